package mica

import java.util.concurrent.atomic.AtomicBoolean
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(120)
class OrderTest {
    /** 100 replies of 200 tokens, collected on a default dispatcher whose threads are all busy. */
    @Test
    fun inOrderUnderLoad() = engine().use { engine ->
        val stop = AtomicBoolean()
        runBlocking {
            repeat(2 * Runtime.getRuntime().availableProcessors()) {
                launch(Dispatchers.Default) { while (!stop.get()) yield() }
            }
            repeat(100) {
                val tokens = withContext(Dispatchers.Default) { engine.generate(greedy("X", 200)).toList() }.tokens()
                assertEquals((1..200).toList(), tokens.map { it.tokens })
            }
            stop.set(true)
        }
    }

    /** The engine waits for a slow collector: at most the token in its hand and one more are computed ahead, and none is dropped. */
    @Test
    fun aSlowCollectorIsWaitedFor() = engine().use { engine ->
        var most = 0
        val seen = ArrayList<Int>()
        runBlocking {
            engine.generate(greedy("X", 40)).collect {
                if (it is GenEvent.Token) {
                    seen += it.tokens
                    delay(20) // longer than a frame, so that what is computed is published
                    most = maxOf(most, engine.accumulatedText.value.length - it.tokens)
                }
            }
        }
        assertEquals((1..40).toList(), seen)
        assertTrue(most <= 2, "$most tokens ahead")
    }

    @Test
    fun takeStopsTheEngine() = engine(endless).use { engine ->
        runBlocking {
            val five = engine.generate(greedy("X", 100_000)).take(5).toList()
            assertEquals(5, five.tokens().size)
            assertEquals("red fox", engine.generate(greedy("R")).toList().text())
        }
    }

    /** Java objects are made and thrown away while the native side writes: on a heap of 96 MB, with the collector forced. */
    @Test
    fun garbageCollectionWhileDecoding() = engine().use { engine ->
        val stop = AtomicBoolean()
        val garbage = Thread {
            var keep: ByteArray? = null
            var n = 0
            while (!stop.get()) {
                keep = ByteArray(1 shl 16)
                if (++n % 400 == 0) System.gc()
            }
            check(keep != null)
        }.apply { start() }
        repeat(15) {
            assertEquals("x".repeat(400), engine.generate(greedy("X", 400)).all().text())
            assertEquals("Hi 🙂!", engine.generate(greedy("E")).all().text())
        }
        stop.set(true)
        garbage.join()
    }
}
