package mica

import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow

/**
 * The text of a reply as it grows, for screens: pieces are appended to one builder and published as a whole at most once in
 * [frameNs], and at the end. A text for each token would copy the reply once a token. Used by one thread at a time.
 */
internal class ReplyText(private val frameNs: Long = FRAME_NS, private val now: () -> Long = System::nanoTime) {
    private val builder = StringBuilder()
    private val published = MutableStateFlow("")
    private var last = 0L
    private var fresh = true

    val flow: StateFlow<String> = published.asStateFlow()

    fun start() {
        builder.setLength(0)
        fresh = true
        published.value = ""
    }

    fun append(piece: String) {
        builder.append(piece)
        val time = now()
        if (fresh || time - last >= frameNs) {
            fresh = false
            last = time
            publish()
        }
    }

    fun publish() {
        published.value = builder.toString()
    }

    private companion object {
        const val FRAME_NS = 16_000_000L // a frame at 60 Hz
    }
}
