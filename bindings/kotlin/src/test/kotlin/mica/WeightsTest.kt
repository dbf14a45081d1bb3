package mica

import java.io.File
import java.net.HttpURLConnection
import java.net.ServerSocket
import java.net.URL
import java.nio.file.Path
import java.security.MessageDigest
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

private val sum = MessageDigest.getInstance("SHA-256").digest(scripted.readBytes()).joinToString("") { "%02x".format(it) }

/** What the process that is killed runs: fetches the address args[0] into the file args[1]. */
object FetchMain {
    @JvmStatic fun main(args: Array<String>) = runBlocking { Weights(args[0], sum).fetch(File(args[1])).let {} }
}

/** Against the server of the public cases, which cuts, lies and stalls (tests/data/cases/dl-common). */
@Timeout(60)
class WeightsTest {
    @TempDir lateinit var folder: Path
    private lateinit var server: Process
    private val port = ServerSocket(0).use { it.localPort }
    private val file get() = folder.resolve("model.gguf").toFile()
    private val part get() = folder.resolve("model.gguf.part").toFile()

    @BeforeEach
    fun serve() {
        val script = File(data, "cases/dl-common/faulty_http.py").path
        server = ProcessBuilder("python3", script, scripted.path, "$port").inheritIO().start()
        while (runCatching { log() }.isFailure) Thread.sleep(20)
    }

    @AfterEach
    fun stop() {
        server.destroy()
    }

    private fun log() = (URL("http://127.0.0.1:$port/log").openConnection() as HttpURLConnection).inputStream.bufferedReader().readLines()
    private fun weights(mode: String, sha256: String = sum, token: String? = null) =
        Weights("http://127.0.0.1:$port/$mode/name.gguf", sha256, token)

    private fun fetch(mode: String, tries: Int = 5) = runBlocking { weights(mode).fetch(file, tries) }
    private fun refused(code: ErrorCode, mode: String, sha256: String = sum) {
        val e = assertThrows(MicaException::class.java) { runBlocking { weights(mode, sha256).fetch(file, 2) } }
        assertEquals(code, e.code, e.message)
        assertFalse(file.exists())
    }

    private fun right() {
        assertArrayEquals(scripted.readBytes(), file.readBytes())
        assertEquals(listOf("model.gguf"), folder.toFile().list()!!.toList())
    }

    @Test
    fun fetchesOnce() {
        val seen = ArrayList<Pair<Long, Long>>()
        runBlocking { weights("ok").fetch(file) { done, total -> seen += done to total } }
        assertEquals(scripted.length() to scripted.length(), seen.last())
        right()
        fetch("ok")
        assertEquals(1, log().size)
        Engine(null, noMachine).use { it.loadBlocking(ModelSource.File(file.path), EngineOptions(512, 1)) }
    }

    @Test
    fun dl01PartsThatAreComplete() {
        val whole = scripted.readBytes()
        for (bytes in listOf(whole, whole + 1, whole.copyOf().also { it[9] = 1 })) {
            part.writeBytes(bytes)
            fetch("ok")
            right()
            file.delete()
        }
        assertTrue(log().size <= 6, "${log()}")
    }

    @Test
    fun dl03WrongRanges() {
        for (mode in listOf("badoffset", "norange", "range416")) {
            part.writeBytes(scripted.readBytes().copyOf(400_000))
            fetch(mode)
            right()
            file.delete()
        }
        part.writeBytes(scripted.readBytes().copyOf(400_000))
        refused(ErrorCode.IO_ERROR, "shortrange") // in which the last byte never comes
        assertEquals(scripted.length() - 1, part.length())
        fetch("ok")
        right()
    }

    @Test
    fun dl04ConnectionsThatEnd() {
        for (mode in listOf("nolength", "e500")) {
            fetch(mode)
            right()
            file.delete()
        }
        refused(ErrorCode.IO_ERROR, "e404")
        refused(ErrorCode.BAD_FILE, "html")
        refused(ErrorCode.BAD_FILE, "ok", "0".repeat(64))
    }

    /** Every answer stops half way: half of what is missing comes each time, until it is a byte. What came is kept. */
    @Test
    fun dl04EveryAnswerStops() {
        refused(ErrorCode.IO_ERROR, "short")
        assertEquals(scripted.length() - 1, part.length())
        assertEquals(1, log().count { "\"range\": null" in it })
        fetch("ok")
        right()
    }

    /** dl-04: a process that is killed while it fetches; the next one goes on from where it was. */
    @Test
    fun dl04KilledAndStartedAgain() {
        val java = File(System.getProperty("java.home"), "bin/java").path
        val classes = System.getProperty("java.class.path")
        val command = listOf(java, "-Xmx64m", "-cp", classes, "-Dmica.data=$data", "mica.FetchMain", weights("slow").url, file.path)
        val process = ProcessBuilder(command).inheritIO().start()
        while (part.length() < 100_000 && process.isAlive) Thread.sleep(10)
        process.destroyForcibly()
        assertTrue(process.waitFor(10, TimeUnit.SECONDS))
        val had = part.length()
        assertTrue(had in 100_000 until scripted.length(), "$had bytes")
        assertFalse(file.exists())
        fetch("ok")
        right()
        assertTrue("\"range\": \"bytes=$had-\", \"if_range\": \"\\\"v1\\\"\"" in log().last(), log().last())
    }

    @Test
    fun dl06RedirectsAndTokens() {
        runBlocking { weights("redirect", token = "secret").fetch(file) }
        right()
        assertEquals(listOf(true, false), log().map { "secret" in it })
        file.delete()
        refused(ErrorCode.IO_ERROR, "redirectloop")
        assertTrue(log().size <= 2 + 11)
    }

    /** dl-08: the file changes on the server between two tries. Never halves of two versions; the sum is the first one's here. */
    @Test
    fun dl08ChangedOnTheServer() {
        val first = URL(weights("etagchange").url).openConnection() as HttpURLConnection
        assertEquals(200, first.responseCode) // from now on it is the second version
        part.writeBytes(scripted.readBytes().copyOf(400_000))
        folder.resolve("model.gguf.part.from").toFile().writeText("\"v1\"")
        val second = scripted.readBytes().map { (it.toInt() xor 1).toByte() }.toByteArray()
        val secondSum = MessageDigest.getInstance("SHA-256").digest(second).joinToString("") { "%02x".format(it) }
        runBlocking { weights("etagchange", secondSum).fetch(file) }
        assertArrayEquals(second, file.readBytes())
    }

    @Test
    fun aCancelledFetchGoesOnLater() = runBlocking {
        val job = launch(Dispatchers.Default) { weights("slow").fetch(file) }
        while (part.length() < 50_000) delay(10)
        val twice = assertThrows(MicaException::class.java) { runBlocking { weights("ok").fetch(file) } }
        assertEquals(ErrorCode.REFUSED, twice.code)
        job.cancelAndJoin()
        assertTrue(part.length() in 50_000 until scripted.length())
        fetch("ok")
        right()
    }
}
