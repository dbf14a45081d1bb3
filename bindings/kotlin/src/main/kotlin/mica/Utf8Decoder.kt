package mica

/**
 * Pieces of UTF-8 to text, whole code points only: a character that is cut between two pieces is held back until it is there. Bytes that
 * can be no character become U+FFFD, as many as the Encoding Standard's decoder gives (which Java's and Android's differ from).
 */
class Utf8Decoder {
    private var code = 0 // of the character under way
    private var missing = 0 // bytes of it
    private var low = 0x80 // what its next byte may be
    private var high = 0xBF

    /** The characters that [bytes] complete. */
    fun decode(bytes: ByteArray): String {
        if (bytes.isEmpty()) return ""
        val out = StringBuilder(bytes.size)
        for (byte in bytes) out.take(byte.toInt() and 0xFF)
        return out.toString()
    }

    /** What is left of a character that never came, as U+FFFD; the decoder is as new then. */
    fun finish(): String = if (missing > 0) REPLACEMENT.toString().also { missing = 0 } else ""

    private fun StringBuilder.take(byte: Int) {
        if (missing > 0 && byte !in low..high) { // the character ends here, and the byte begins another
            append(REPLACEMENT)
            missing = 0
        }
        if (missing == 0) begin(byte) else proceed(byte)
    }

    private fun StringBuilder.proceed(byte: Int) {
        low = 0x80
        high = 0xBF
        code = code shl 6 or (byte and 0x3F)
        if (--missing == 0) appendCodePoint(code)
    }

    /** The Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. */
    private fun StringBuilder.begin(byte: Int) {
        low = if (byte == 0xE0) 0xA0 else if (byte == 0xF0) 0x90 else 0x80
        high = if (byte == 0xED) 0x9F else if (byte == 0xF4) 0x8F else 0xBF
        missing = when (byte) {
            in 0xC2..0xDF -> 1
            in 0xE0..0xEF -> 2
            in 0xF0..0xF4 -> 3
            else -> 0
        }
        code = byte and (0x3F shr missing)
        if (missing == 0) append(if (byte < 0x80) byte.toChar() else REPLACEMENT)
    }

    private companion object {
        const val REPLACEMENT = '\uFFFD'
    }
}
