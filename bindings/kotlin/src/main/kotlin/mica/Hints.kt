package mica

import java.io.File

/** Where an engine tells the system how long a token took and how long it may take, so that the clocks follow: Android's
 * PerformanceHintManager (AndroidHints), or in a test a list. Used by the engine's own thread alone. */
fun interface PerformanceHints {
    /** A session for the threads with these numbers (Linux's), whose work for one token should take [targetNs]. Null: the system has
     * none, and is not asked again in this reply. */
    fun open(threads: IntArray, targetNs: Long): PerformanceSession?
}

interface PerformanceSession : AutoCloseable {
    fun target(ns: Long)

    /** What a token took: above 0, without the governor's pauses. */
    fun report(ns: Long)
}

/** The governor of an engine now, in the order of engine.c. */
internal class GovernorFigures(f: DoubleArray) {
    private val objective = Objective.entries.first { it.number == f[0].toInt() }
    private val rateTps = f[1]
    private val changes = f[3].toLong()
    val pauseNs = (f[2] * 1000).toLong()

    /** What the target belongs to: it stays while the governor stays with an objective and a level. Taken anew from each rate, it
     * would follow the clocks down. */
    val choice get() = objective to changes

    /** Nanoseconds for a token; null: nothing aims at a speed, or none was measured yet. Held is what the governor's level reaches;
     * a burst, in which the governor measures nothing, asks for twice the speed of the token that took [tookNs]: for all there is. */
    fun targetNs(tookNs: Long): Long? = when (objective) {
        Objective.BURST -> tookNs / 2
        Objective.SUSTAINED, Objective.EFFICIENT -> if (rateTps > 0) (1e9 / rateTps).toLong() else null
        else -> null
    }?.coerceAtLeast(1)
}

/** The hints of one reply. [threads]: those that compute. [now]: the governor. */
internal class Hinting(
    private val hints: PerformanceHints,
    private val threads: () -> IntArray,
    private val now: () -> GovernorFigures,
) : AutoCloseable {
    private var session: PerformanceSession? = null
    private var members = IntArray(0)
    private var choice: Any? = null
    private var pauseNs = 0L
    private var endNs = Long.MIN_VALUE / 2 // of the step before
    private var refused = false

    /** After a step, which made a [token] or none. The governor's pause is at the beginning of a step, counted from the last one's end. */
    fun step(beginNs: Long, endNs: Long, token: Boolean) {
        val paused = (this.endNs + pauseNs - beginNs).coerceAtLeast(0)
        this.endNs = endNs
        if (!token || refused) return
        val took = (endNs - beginNs - paused).coerceAtLeast(1)
        session?.report(took)
        val governor = now()
        pauseNs = governor.pauseNs
        if (governor.choice != choice) governor.targetNs(took)?.let { aim(it, governor.choice) }
    }

    private fun aim(targetNs: Long, choice: Any) {
        val threads = threads()
        this.choice = choice
        if (session != null && threads.contentEquals(members)) {
            session?.target(targetNs)
            return
        }
        close()
        members = threads
        session = hints.open(threads, targetNs)
        refused = session == null
    }

    override fun close() {
        session?.close()
        session = null
    }
}

/** Threads of this process that are called [name], by number and in order. The engine's helpers have the name of the thread that started
 * them, as Linux passes it on. */
internal fun threadsNamed(name: String): IntArray =
    File("/proc/self/task").listFiles().orEmpty()
        .filter { task -> runCatching { File(task, "comm").readText().trimEnd() == name }.getOrDefault(false) } // it may be gone by now
        .map { it.name.toInt() }.sorted().toIntArray()
