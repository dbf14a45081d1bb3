package mica.chat

/** Milliseconds to the first token, and tokens a second after it (NaN: there is only one). */
data class Speed(val ttftMs: Double, val tokensPerSecond: Double)

/** The speed of a reply under way, for people: at the first token, then at most every [everyNs]. */
internal class SpeedMeter(private val everyNs: Long = 250_000_000, private val now: () -> Long = System::nanoTime) {
    private val askedNs = now()
    private var firstNs = 0L
    private var firstTokens = 0
    private var toldNs = 0L

    /** After an event, with the number of tokens so far: what to show, or null where it is too early for something new. */
    fun token(tokens: Int): Speed? {
        val time = now()
        val first = firstTokens == 0
        if (first) {
            firstNs = time
            firstTokens = tokens
        } else if (time - toldNs < everyNs) {
            return null
        }
        toldNs = time
        val seconds = (time - firstNs) / 1e9
        return Speed((firstNs - askedNs) / 1e6, if (first) Double.NaN else (tokens - firstTokens) / seconds)
    }
}
