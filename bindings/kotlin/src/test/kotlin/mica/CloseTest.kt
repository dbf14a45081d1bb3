package mica

import java.io.File
import kotlin.random.Random
import kotlin.time.Duration.Companion.microseconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(120)
class CloseTest {
    private fun refused(block: () -> Unit) {
        assertThrows(IllegalStateException::class.java, block)
    }

    @Test
    fun useAfterCloseIsAnException() {
        val engine = engine()
        engine.close()
        engine.close()
        refused { engine.info() }
        refused { engine.loadBlocking(source) }
        refused { runBlocking { engine.countTokens(greedy("X")) } }
        refused { engine.generate(greedy("X")).all() }
        refused { engine.device.read() }
        refused { engine.device.report(AppReport()) }
        Engine(null, noMachine).use { refused { it.generate(greedy("X")).all() } } // nothing is loaded
    }

    /** Numbers that were never handles, are of another kind, or no longer are. */
    @Test
    fun noNumberCrashes() {
        val random = Random(6)
        val device = Device(noMachine)
        val dead = Device(noMachine).also { it.close() }.handle
        val numbers = listOf(0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE, dead, device.handle, device.handle + 65536) +
            List(10_000) { random.nextLong() }
        val out = LongArray(Native.STEP_FIGURES)
        for (n in numbers) {
            refused { Native.replyStep(n, out) }
            refused { Native.engineInfo(n) }
            Native.replyCancel(n)
            Native.engineClose(n)
            if (n != device.handle) refused { Native.deviceRead(n) }
        }
        refused { Native.replySubmit(dead, ByteArray(1), false, 1, Sampling().figures(), 1, emptyArray()) }
        refused { Native.countTokens(dead, ByteArray(1), true) }
        refused { Native.replyResult(dead, DoubleArray(Native.RESULT_FIGURES)) }
        refused { Native.replyReceipt(dead) }
        refused { Native.engineFigures(dead) }
        assertEquals(-1L, device.read().memoryTotalBytes)
        device.close()
    }

    /** Arrays that are too short are an exception as well. */
    @Test
    fun noArrayCrashes() {
        val handle = Native.deviceOpen(ByteArray(0)).let { device ->
            Native.engineOpen(scripted.path.toByteArray(), -1, 0, 0, null, device, 512, 1, 64, 1, 0, -1, 0, 0).also { Native.deviceClose(device) }
        }
        fun short(block: () -> Unit) = assertThrows(ArrayIndexOutOfBoundsException::class.java, block)
        short { Native.replySubmit(handle, "X".toByteArray(), false, 3, FloatArray(2), 1, emptyArray()) }
        Native.replySubmit(handle, "X".toByteArray(), false, 3, Sampling.GREEDY.figures(), 1, emptyArray())
        short { Native.replyStep(handle, LongArray(1)) }
        while (true) {
            val out = LongArray(Native.STEP_FIGURES)
            Native.replyStep(handle, out)
            if (out[Native.RUNNING] == 0L) break
        }
        short { Native.replyResult(handle, DoubleArray(1)) }
        assertEquals("length", String(Native.replyResult(handle, DoubleArray(Native.RESULT_FIGURES))))
        Native.engineClose(handle)
    }

    @Test
    fun closeWhileGenerating() {
        val random = Random(7)
        repeat(60) {
            val engine = engine(endless)
            val last = runBlocking {
                val events = async(Dispatchers.Default) { runCatching { engine.generate(greedy("X", 100_000)).toList() } }
                delay(random.nextInt(0, 4000).microseconds)
                engine.close()
                events.await()
            }
            val events = last.getOrElse { e -> // closed before it began
                assertTrue(e is IllegalStateException, "$e")
                emptyList()
            }
            if (events.isNotEmpty()) {
                assertEquals(ErrorCode.CLOSED, (events.last() as GenEvent.Error).code)
                assertEquals(1, events.count { it.isTerminal() })
            }
            assertEquals(EngineState.Idle, engine.state.value)
        }
    }

    @Test
    fun closeFromTheCollector() {
        val engine = engine(endless)
        val events = ArrayList<GenEvent>()
        runBlocking(Dispatchers.Unconfined) {
            engine.generate(greedy("X", 100_000)).collect {
                events += it
                if (events.size == 3) engine.close()
            }
        }
        assertEquals(ErrorCode.CLOSED, (events.last() as GenEvent.Error).code)
    }

    /** Handles, mappings of the model, files, threads and the private memory of the process are what they were. */
    @Test
    fun nothingLeaks() {
        fun cycle(n: Int) = repeat(n) { i ->
            engine(endless).use { engine ->
                if (i % 3 == 0) runCatching { engine.loadBlocking(ModelSource.File("no such file")) }
                else runBlocking { engine.generate(greedy("X", 20 * (i % 3))).toList() }
            }
        }
        fun mappings() = File("/proc/self/maps").readLines().count { "scripted.gguf" in it }
        fun files() = File("/proc/self/fd").list()!!.size
        fun engineThreads() = File("/proc/self/task").listFiles()!!.size
        fun privateKb() = File("/proc/self/status").readLines().first { it.startsWith("RssAnon") }.filter { it.isDigit() }.toLong()
        val handles = Native.openHandles()
        cycle(40) // what the JVM and the allocator take once, they take now
        System.gc()
        val files = files()
        val threads = engineThreads()
        val before = privateKb()
        cycle(120)
        System.gc()
        assertEquals(handles, Native.openHandles())
        assertEquals(0, mappings())
        assertTrue(files() < files + 20, "${files()} files, $files before") // the JVM opens some of its own; a leak is 40 and more
        val deadline = System.nanoTime() + 20_000_000_000
        while (engineThreads() > threads + 8 && System.nanoTime() < deadline) Thread.sleep(20) // 8: of the JVM's pools
        assertTrue(engineThreads() <= threads + 8, "${engineThreads()} threads, $threads before")
        val grown = privateKb() - before
        println("private memory after 120 engines: $grown KB more")
        assertTrue(grown < 40_000, "$grown KB more") // sees a leak of 340 KB an engine; smaller ones are for the counts above
    }
}
