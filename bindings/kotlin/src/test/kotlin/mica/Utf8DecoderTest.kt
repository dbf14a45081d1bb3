package mica

import java.io.File
import kotlin.random.Random
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

class Utf8DecoderTest {
    private fun bytes(hex: String) = hex.chunked(2).map { it.toInt(16).toByte() }.toByteArray()

    private fun decode(chunks: List<ByteArray>): String {
        val decoder = Utf8Decoder()
        return chunks.joinToString("") { decoder.decode(it) } + decoder.finish()
    }

    /** mob-01: characters that are cut between chunks, NUL, and bytes that are no UTF-8, to UTF-16 units. */
    @Test
    fun mob01() {
        val file = File(data, "cases/mob-01-utf8-to-java-string/cases.json").readText()
        val case = Regex("\"chunks\": \\[(.*?)].*?\"utf16\": \\[(.*?)]", RegexOption.DOT_MATCHES_ALL)
        val cases = case.findAll(file).toList()
        assertEquals(11, cases.size)
        for (found in cases) {
            val chunks = Regex("\"([0-9a-f]*)\"").findAll(found.groupValues[1]).map { bytes(it.groupValues[1]) }.toList()
            val units = Regex("\\d+").findAll(found.groupValues[2]).map { it.value.toInt() }.toList()
            assertEquals(units, decode(chunks).map { it.code }, found.value)
        }
    }

    @Test
    fun everyWayToCutGivesTheSame() {
        val random = Random(1)
        val alphabet = "aé你🙂👩‍👧\u0000".toByteArray() + bytes("ff80e4bdf09fc0eda0")
        repeat(2000) {
            val all = ByteArray(random.nextInt(1, 24)) { alphabet[random.nextInt(alphabet.size)] }
            val cuts = List(random.nextInt(0, 5)) { random.nextInt(0, all.size + 1) }.sorted()
            val ends = cuts + all.size
            val chunks = (listOf(0) + cuts).zip(ends).map { (from, to) -> all.copyOfRange(from, to) }
            assertEquals(decode(listOf(all)), decode(chunks))
        }
    }

    @Test
    fun everyCodePoint() {
        val all = buildString { for (code in 0..0x10FFFF) if (code !in 0xD800..0xDFFF) appendCodePoint(code) }
        assertEquals(all, decode(all.toByteArray().toList().chunked(1021) { it.toByteArray() }))
    }

    @Test
    fun neverHalfACharacter() {
        val decoder = Utf8Decoder()
        val pieces = "a🙂b你c".toByteArray().map { decoder.decode(byteArrayOf(it)) }
        for (piece in pieces) {
            assertFalse(piece.isNotEmpty() && piece.last().isHighSurrogate())
            assertFalse(piece.isNotEmpty() && piece.first().isLowSurrogate())
        }
        assertEquals("a🙂b你c", pieces.joinToString(""))
    }

    /** mob-01: JNI's own strings are no UTF-8, so that no text may cross as one. */
    @Test
    fun noModifiedUtf8InTheBinding() {
        val files = File(System.getProperty("mica.jni")).listFiles { f -> f.extension in setOf("c", "h") }!!
        assertTrue(files.size >= 5)
        for (file in files)
            for (call in listOf("NewStringUTF", "GetStringUTF", "GetStringChars", "FastNative"))
                assertFalse(call in file.readText(), "$call in ${file.name}")
    }
}
