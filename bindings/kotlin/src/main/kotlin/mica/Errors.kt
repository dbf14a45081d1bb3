package mica

/** What went wrong, for programs; the message of the exception is for people. The first 14 are the statuses of mica.h. */
enum class ErrorCode(internal val status: Int) {
    INVALID_ARGUMENT(1), OUT_OF_MEMORY(2), IO_ERROR(3), BAD_FILE(4), UNSUPPORTED(5), CONTEXT_FULL(6), CANCELLED(7), NON_FINITE(8),
    BAD_TEMPLATE(9), BAD_TEXT(10), OVER_BUDGET(11), BAD_KERNELS(12), REFUSED(13), TOO_HOT(14),

    /** The engine was closed while it was working. */
    CLOSED(-1),

    /** A status that this version of the binding does not know. */
    OTHER(-2),
    ;

    internal companion object {
        fun of(status: Int): ErrorCode = entries.firstOrNull { it.status == status } ?: OTHER
    }
}

/** A failure of the engine. [position] is the byte in the input where that makes sense, else -1. */
open class MicaException internal constructor(val code: ErrorCode, message: String, val position: Long = -1) : Exception(message) {
    /** For the native side. */
    internal constructor(status: Int, message: ByteArray, position: Long) :
        this(ErrorCode.of(status), String(message, Charsets.UTF_8), position)
}

/** The prompt does not fit the context that the engine was loaded with. Shorten it, or load with more. */
class PromptTooLongException internal constructor(val promptTokens: Int, val contextTokens: Int, message: String) :
    MicaException(ErrorCode.CONTEXT_FULL, message) {
    internal constructor(promptTokens: Int, contextTokens: Int, message: ByteArray) :
        this(promptTokens, contextTokens, String(message, Charsets.UTF_8))
}
