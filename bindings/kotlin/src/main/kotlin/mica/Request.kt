package mica

/** A message of a conversation; [role] is "system", "user" or "assistant". */
data class Message(val role: String, val content: String)

/** How tokens are chosen. A [temperature] of 0 always takes the most probable one; [seed] -1 is a fresh one each time. */
data class Sampling @JvmOverloads constructor(
    val temperature: Float = 0.8f,
    val topP: Float = 0.95f,
    val minP: Float = 0.05f,
    val topK: Int = 40,
    val seed: Long = -1,
    val repeatPenalty: Float = 1f,
    val frequencyPenalty: Float = 0f,
    val presencePenalty: Float = 0f,
) {
    internal fun figures() =
        floatArrayOf(temperature, topP, minP, repeatPenalty, frequencyPenalty, presencePenalty, topK.toFloat())

    companion object {
        @JvmField val GREEDY = Sampling(temperature = 0f)
    }
}

/** What to say: a conversation, which the model's template turns into a prompt, or a text to go on from. Made by [chat] and [prompt]. */
class GenRequest private constructor(
    internal val messages: List<Message>?,
    internal val text: String?,
    val maxTokens: Int,
    val sampling: Sampling,
    val stop: List<String>,
) {
    /** Without it, the reply may fill the context. */
    fun withMaxTokens(n: Int) = GenRequest(messages, text, n, sampling, stop)
    fun withSampling(sampling: Sampling) = GenRequest(messages, text, maxTokens, sampling, stop)

    /** Texts at which the reply ends; they are not part of it. */
    fun withStop(vararg stop: String) = GenRequest(messages, text, maxTokens, sampling, stop.toList())

    internal val isChat get() = messages != null
    internal fun bytes(): ByteArray = (text ?: Json.request(messages!!)).toByteArray(Charsets.UTF_8)
    internal fun stopBytes(): Array<ByteArray> = stop.map { it.toByteArray(Charsets.UTF_8) }.toTypedArray()

    companion object {
        @JvmStatic fun chat(messages: List<Message>) = GenRequest(messages.toList(), null, -1, Sampling(), emptyList())
        @JvmStatic fun chat(text: String) = chat(listOf(Message("user", text)))
        @JvmStatic fun prompt(text: String) = GenRequest(null, text, -1, Sampling(), emptyList())
    }
}

/** The little JSON that a request needs. */
internal object Json {
    fun request(messages: List<Message>) = buildString {
        append("{\"messages\":[")
        messages.forEachIndexed { i, message ->
            append(if (i == 0) "{\"role\":" else ",{\"role\":")
            string(message.role)
            append(",\"content\":")
            string(message.content)
            append('}')
        }
        append("]}")
    }

    private fun StringBuilder.string(text: String) {
        append('"')
        for (c in text) when {
            c == '"' || c == '\\' -> append('\\').append(c)
            c < ' ' -> append("\\u00").append("0123456789abcdef"[c.code shr 4]).append("0123456789abcdef"[c.code and 15])
            else -> append(c)
        }
        append('"')
    }
}
