package mica

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class ReplyTextTest {
    /** 10,000 tokens, one a millisecond: a text for each would copy 50 MB; at 60 Hz it is a sixteenth of that. */
    @Test
    fun publishesAtFrameRate() {
        var time = 0L
        val text = ReplyText { time }
        var published = 0
        var last: String? = null
        text.start()
        repeat(10_000) {
            text.append("x")
            if (text.flow.value !== last) published++
            last = text.flow.value
            time += 1_000_000
        }
        assertEquals(10_000 / 16, published)
        text.publish()
        assertEquals("x".repeat(10_000), text.flow.value)
    }

    @Test
    fun theFirstPieceIsThereAtOnceAndSlowOnesTooEachTime() {
        var time = 5L
        val text = ReplyText { time }
        text.start()
        text.append("a")
        assertEquals("a", text.flow.value)
        text.append("b")
        assertEquals("a", text.flow.value)
        time += 16_000_000
        text.append("c")
        assertEquals("abc", text.flow.value)
        text.start()
        assertTrue(text.flow.value.isEmpty())
    }
}
