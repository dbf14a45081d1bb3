package mica

import java.util.Locale

/** What happens while a reply is made: any number of [Token] and [Notice], then exactly one [Done] or [Error]. */
sealed interface GenEvent {
    /** The next piece of text, of whole code points; [tokens] is how many tokens there are by now. */
    data class Token(val text: String, val tokens: Int) : GenEvent

    data class Notice(val notice: NoticeKind) : GenEvent

    /** [finishReason]: "eos" or "stop" (the model's end, or a stop text), "length", "context". [receipt] is JSON: what really ran. */
    data class Done(val finishReason: String, val usage: Usage, val timings: Timings, val receipt: String) : GenEvent

    data class Error(val code: ErrorCode, val cause: Exception) : GenEvent
}

sealed interface NoticeKind {
    /** The context was full, and its policy dropped the oldest tokens. */
    data class ContextTrimmed(val droppedTokens: Int) : NoticeKind

    /** The device slows itself down ([active]), or no longer does. */
    data class Throttled(val active: Boolean, val status: ThermalStatus) : NoticeKind

    /** The reply waits: [Engine.pause], or the app went into the background. */
    data object Suspended : NoticeKind
    data object Resumed : NoticeKind
}

data class Usage(val promptTokens: Int, val cachedTokens: Int, val generatedTokens: Int, val droppedTokens: Int)

/** Milliseconds and tokens a second. [tpotMs] is the time per token after the first one; 0 with fewer than two. */
data class Timings(
    val ttftMs: Double,
    val tpotMs: Double,
    val tpotP50Ms: Double,
    val tpotP95Ms: Double,
    val prefillMs: Double,
    val prefillTps: Double,
    val decodeTps: Double,
    val peakRssBytes: Long,
    val threads: Int,
)

/** The 14 figures of a result, in the order of reply.c. */
internal class Figures(private val f: DoubleArray) {
    fun usage() = Usage(f[0].toInt(), f[1].toInt(), f[2].toInt(), f[3].toInt())
    fun timings() = Timings(f[5], f[6], f[7], f[8], f[9], f[10], f[11], f[12].toLong(), f[13].toInt())
}

internal fun metricsLine(done: GenEvent.Done, text: CharSequence): String =
    String.format(
        Locale.ROOT, "ttft_ms=%.1f;tpot_ms=%.2f;prompt_n=%d;gen_n=%d;text=%s",
        done.timings.ttftMs, done.timings.tpotMs, done.usage.promptTokens, done.usage.generatedTokens, text,
    )
