package mica

import java.io.File
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.math.abs
import kotlinx.coroutines.flow.takeWhile
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

/** What a phone's PerformanceHintManager would have been told. Simulation: no clock follows. */
class FakeHints(private val refuses: Boolean = false) : PerformanceHints {
    class Session(val threads: List<Int>, target: Long) : PerformanceSession {
        val targets = CopyOnWriteArrayList(listOf(target))
        val reports = CopyOnWriteArrayList<Long>()
        @Volatile var closed = false
        override fun target(ns: Long) = targets.plusAssign(ns)
        override fun report(ns: Long) = reports.plusAssign(ns)
        override fun close() { closed = true }
    }

    val sessions = CopyOnWriteArrayList<Session>()
    @Volatile var asked = 0
    override fun open(threads: IntArray, targetNs: Long): PerformanceSession? {
        asked++
        return if (refuses) null else Session(threads.toList(), targetNs).also { sessions += it }
    }
}

@Timeout(60)
class HintsTest {
    private fun figures(objective: Objective, rate: Double = Double.NaN, pauseUs: Int = 0, changes: Int = 0) =
        GovernorFigures(doubleArrayOf(objective.number.toDouble(), rate, pauseUs.toDouble(), changes.toDouble()))

    @Test
    fun theTargetIsTheGovernors() {
        assertEquals(20_000_000L, figures(Objective.SUSTAINED, 50.0).targetNs(1))
        assertEquals(20_000_000L, figures(Objective.EFFICIENT, 50.0).targetNs(1))
        assertEquals(7_000_000L, figures(Objective.BURST).targetNs(14_000_000))
        for (objective in listOf(Objective.SUSTAINED, Objective.EFFICIENT)) assertEquals(null, figures(objective).targetNs(14_000_000))
        for (objective in listOf(Objective.NONE, Objective.OFF)) assertEquals(null, figures(objective, 50.0).targetNs(14_000_000))
        assertEquals(1L, figures(Objective.BURST).targetNs(1))
    }

    /** Pauses are no work, whether they fill a step's beginning or were over by then; steps of a prompt are no tokens. */
    @Test
    fun whatIsReported() {
        val hints = FakeHints()
        Hinting(hints, { intArrayOf(7) }) { figures(Objective.SUSTAINED, 1000.0, pauseUs = 300) }.use {
            it.step(0, 1_000_000, token = true) // no session yet
            it.step(1_000_000, 2_300_000, token = true) // 300 us of it a pause
            it.step(2_500_000, 3_600_000, token = true) // 100 us
            it.step(9_000_000, 9_900_000, token = true) // none
            it.step(9_900_000, 9_990_000, token = false)
        }
        val session = hints.sessions.single()
        assertEquals(listOf(1_000_000L, 1_000_000L, 900_000L), session.reports)
        assertEquals(listOf(1_000_000L), session.targets)
        assertEquals(listOf(7), session.threads)
        assertTrue(session.closed)
    }

    /** A target stays while the governor's choice does, whatever the rate; other threads are another session. */
    @Test
    fun whenTheTargetChanges() {
        val hints = FakeHints()
        var threads = intArrayOf(7)
        var now = figures(Objective.SUSTAINED)
        Hinting(hints, { threads }) { now }.use {
            var time = 0L
            fun token(next: GovernorFigures) {
                now = next
                it.step(time, time + 500_000, token = true)
                time += 500_000
            }
            token(figures(Objective.SUSTAINED)) // not measured yet
            assertEquals(0, hints.asked)
            token(figures(Objective.SUSTAINED, 1000.0))
            token(figures(Objective.SUSTAINED, 800.0))
            assertEquals(listOf(1_000_000L), hints.sessions.single().targets)
            token(figures(Objective.SUSTAINED, 500.0, changes = 1))
            token(figures(Objective.EFFICIENT, 400.0, changes = 1))
            assertEquals(listOf(1_000_000L, 2_000_000L, 2_500_000L), hints.sessions.single().targets)
            threads = intArrayOf(7, 8)
            token(figures(Objective.EFFICIENT, 250.0, changes = 2))
        }
        assertEquals(listOf(listOf(7), listOf(7, 8)), hints.sessions.map { it.threads })
        assertEquals(listOf(4_000_000L), hints.sessions[1].targets)
        assertTrue(hints.sessions.all { it.closed })
    }

    @Test
    fun whoRefusesIsNotAskedAgain() {
        val hints = FakeHints(refuses = true)
        Hinting(hints, { intArrayOf(7) }) { figures(Objective.BURST) }.use { hinting ->
            repeat(5) { hinting.step(it * 10L, it * 10L + 5, token = true) }
        }
        assertEquals(1, hints.asked)
    }

    private fun FakeHints.engine(objective: Objective, threads: Int = 1) =
        Engine(null, noMachine, this).apply { loadBlocking(source, endless.copy(objective = objective, threads = threads)) }

    /** A burst: what the engine reports of every token but the first, for its own threads. */
    @Test
    fun anEngineReportsItsTokens() {
        val hints = FakeHints()
        hints.engine(Objective.BURST, threads = 2).use { engine ->
            val done = engine.generate(greedy("X", 300)).all().last() as GenEvent.Done
            val session = hints.sessions.single()
            assertEquals(299, session.reports.size)
            assertEquals(2, session.threads.size)
            val all = File("/proc/self/task").list()!!.map { it.toInt() }
            assertTrue(all.containsAll(session.threads), "${session.threads} of $all")
            val median = session.reports.sorted()[149] / 1e6
            val own = done.timings.tpotP50Ms
            assertTrue(abs(median - own) < 0.5 * median + 0.05, "$median ms, $own ms by the engine")
            assertTrue(session.closed)
            engine.generate(greedy("X", 10)).all()
            assertEquals(2, hints.sessions.size)
        }
    }

    /** The governor measures for a second or so; then its rate is the target. */
    @Test
    fun aGovernorsRateIsTheTarget() {
        val hints = FakeHints()
        hints.engine(Objective.SUSTAINED).use { engine ->
            runBlocking {
                engine.generate(greedy("X", 10_000_000)).takeWhile { (hints.sessions.lastOrNull()?.reports?.size ?: 0) < 50 }.collect {}
            }
            val session = hints.sessions.last()
            val median = session.reports.sorted()[session.reports.size / 2]
            assertTrue(session.targets.last() in median / 3..median * 3, "target ${session.targets.last()} ns, tokens take $median ns")
            assertTrue(session.closed)
        }
    }

    @Test
    fun withoutAnAimThereIsNoSession() {
        val hints = FakeHints()
        for (objective in listOf(Objective.NONE, Objective.OFF)) hints.engine(objective).use { it.generate(greedy("X", 50)).all() }
        assertEquals(0, hints.asked)
        assertFalse(hints.sessions.isNotEmpty())
    }

    @Test
    fun aModelThatWasUnloadedComesBack() = engine().use { engine ->
        runBlocking {
            engine.unload()
            assertEquals(EngineState.Idle, engine.state.value)
            assertFalse("scripted.gguf" in File("/proc/self/maps").readText())
            engine.load(source, EngineOptions(512, 1))
        }
        assertEquals("red fox", engine.generate(greedy("R")).all().text())
    }
}
