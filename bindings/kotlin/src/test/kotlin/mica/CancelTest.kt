package mica

import com.sun.management.OperatingSystemMXBean
import java.lang.management.ManagementFactory
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(120)
class CancelTest {
    private fun cpuNs() = (ManagementFactory.getOperatingSystemMXBean() as OperatingSystemMXBean).processCpuTime

    /** mob-04: of 100,000 tokens five are taken, then the job is cancelled. The native loop ends within two tokens and 500 ms, nothing
     * comes afterwards, the processor is idle, and a new reply works. */
    @Test
    fun mob04CancelStopsTheNativeLoop() = engine(endless).use { engine ->
        runBlocking {
            var seen = 0
            val fifth = CompletableDeferred<Unit>()
            val job = launch(Dispatchers.Default) {
                engine.generate(greedy("X", 100_000)).collect {
                    if (it is GenEvent.Token && ++seen == 5) {
                        fifth.complete(Unit)
                        delay(Long.MAX_VALUE) // so that the rest is the engine's own doing
                    }
                }
            }
            fifth.await()
            val start = System.nanoTime()
            job.cancelAndJoin()
            engine.state.first { it == EngineState.Ready }
            val ms = (System.nanoTime() - start) / 1_000_000
            val computed = engine.accumulatedText.value.length
            assertTrue(ms <= 500, "$ms ms")
            assertTrue(computed <= 7, "$computed tokens")
            delay(50)
            assertEquals(5, seen)
            assertEquals(computed, engine.accumulatedText.value.length)
            val cpu = cpuNs()
            delay(400)
            assertTrue(cpuNs() - cpu < 200_000_000, "${(cpuNs() - cpu) / 1_000_000} ms of CPU in 400 ms")
            assertEquals("Hi 🙂!", engine.generate(greedy("E")).toList().text())
        }
    }

    /** mob-04: the same while a long prompt is read, from another thread. */
    @Test
    fun mob04CancelWhileThePromptIsRead() = engine(endless.copy(chunkTokens = 1)).use { engine ->
        runBlocking {
            var early = 0
            repeat(20) {
                val job = launch(Dispatchers.Default) { engine.generate(greedy("$it" + "x".repeat(490), 100_000)).collect {} }
                engine.state.first { state -> state == EngineState.Generating }
                val start = System.nanoTime()
                launch(Dispatchers.IO) { job.cancelAndJoin() }.join()
                engine.state.first { state -> state == EngineState.Ready }
                assertTrue(System.nanoTime() - start < 500_000_000)
                if (engine.accumulatedText.value.isEmpty()) early++
            }
            assertTrue(early > 0, "no cancel came before the first token")
            assertEquals("red fox", engine.generate(greedy("R")).toList().text())
        }
    }

    @Test
    fun aThousandCancelsAtRandomTimes() = engine(endless).use { engine ->
        val random = Random(4)
        runBlocking {
            repeat(1000) { i ->
                val job = launch(Dispatchers.Default) { engine.generate(greedy("X", 100_000)).collect {} }
                delay(random.nextInt(0, 3000).microseconds)
                if (i % 2 == 0) job.cancelAndJoin() else job.cancel()
            }
            assertEquals("alpha beta gamma delta", engine.generate(greedy("S")).toList().text())
            assertEquals(EngineState.Ready, engine.state.value)
        }
    }

    @Test
    fun cancelWhileLoading() {
        val random = Random(5)
        Engine(null, noMachine).use { engine ->
            runBlocking {
                repeat(50) {
                    val job = launch(Dispatchers.Default) { engine.load(source, EngineOptions(512, 1)) }
                    delay(random.nextInt(0, 2000).microseconds)
                    job.cancelAndJoin()
                    val state = engine.state.value
                    assertTrue(state == EngineState.Ready || state == EngineState.Idle, "$state")
                }
                engine.load(source, EngineOptions(512, 1))
                assertEquals("red fox", engine.generate(greedy("R")).toList().text())
            }
        }
    }
}
