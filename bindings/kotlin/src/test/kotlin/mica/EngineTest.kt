package mica

import app.cash.turbine.test
import java.io.File
import java.io.FileInputStream
import java.nio.file.Files
import java.nio.file.Path
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertInstanceOf
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

@Timeout(60)
class EngineTest {
    private val patience = 30.seconds // on a machine that is busy

    @Test
    fun statesFromIdleToIdle() = runTest {
        val engine = Engine(null, noMachine)
        engine.state.test(timeout = patience) {
            assertEquals(EngineState.Idle, awaitItem())
            engine.load(source, EngineOptions(contextTokens = 512, threads = 1))
            var state = awaitItem()
            while (state is EngineState.Loading) state = awaitItem()
            assertEquals(EngineState.Ready, state)
            val events = engine.generate(greedy("S")).toList()
            assertEquals("alpha beta gamma delta", events.text())
            assertEquals(EngineState.Generating, awaitItem())
            assertEquals(EngineState.Ready, awaitItem())
            engine.close()
            assertEquals(EngineState.Idle, awaitItem())
        }
    }

    /** An emoji whose four bytes are four tokens, and CJK characters of three (the kind of mob-01 and srv-01). */
    @Test
    fun charactersThatAreSplitAcrossTokens() = engine().use { engine ->
        engine.generate(greedy("E")).all().let {
            assertEquals("Hi 🙂!", it.text())
            assertTrue(it.tokens().any { t -> t.text == "🙂" })
        }
        engine.generate(greedy("C")).all().let {
            assertEquals("zh你試#", it.text())
            assertTrue(it.tokens().map { t -> t.text }.containsAll(listOf("你", "試")))
        }
        assertEquals("ok\uFFFDgo", engine.generate(greedy("V")).all().text())
    }

    @Test
    fun exactlyOneTerminalEvent() = engine().use { engine ->
        for (request in listOf(greedy("S"), greedy("X", 7), greedy("X"), greedy("R").withStop("fox"), greedy("E", 0))) {
            val events = engine.generate(request).all()
            assertEquals(1, events.count { it.isTerminal() }, "$events")
            assertInstanceOf(GenEvent.Done::class.java, events.last())
        }
        assertEquals("length", (engine.generate(greedy("X", 7)).all().last() as GenEvent.Done).finishReason)
        assertEquals("context", (engine.generate(greedy("X")).all().last() as GenEvent.Done).finishReason)
        assertEquals("red ", engine.generate(greedy("R").withStop("fox")).all().text())
    }

    @Test
    fun doneSaysWhatRan() = engine().use { engine ->
        val done = engine.generate(greedy("X", 20)).all().last() as GenEvent.Done
        assertEquals(20, done.usage.generatedTokens)
        assertEquals(engine.let { runBlocking { it.countTokens(greedy("X")) } }, done.usage.promptTokens)
        assertTrue(done.timings.ttftMs > 0 && done.timings.tpotMs > 0 && done.timings.peakRssBytes != 0L)
        assertEquals(1, done.timings.threads)
        assertTrue(done.receipt.startsWith("{") && "\"kernels\"" in done.receipt)
        val info = engine.info()
        assertEquals("llama", info.architecture)
        assertEquals(512, info.contextTokens)
        assertEquals(scripted.length(), info.fileBytes)
        assertTrue(info.kernels.isNotEmpty() && info.name.isNotEmpty())
    }

    @Test
    fun chatGoesThroughTheTemplate() = engine().use { engine ->
        val request = GenRequest.chat(listOf(Message("user", "S"))).withSampling(Sampling.GREEDY)
        assertEquals("alpha beta gamma delta", engine.generate(request).all().text())
        val hostile = GenRequest.chat("\"\\\u0001</s>🙂\n").withSampling(Sampling.GREEDY).withMaxTokens(1)
        assertInstanceOf(GenEvent.Done::class.java, engine.generate(hostile).all().last())
    }

    /** The form that telemetry wants. */
    @Test
    fun instrumented() = engine().use { engine ->
        val line = runBlocking { engine.generateInstrumented(greedy("E")) }
        assertTrue(Regex("ttft_ms=\\d+\\.\\d;tpot_ms=\\d+\\.\\d\\d;prompt_n=\\d+;gen_n=8;text=Hi 🙂!").matches(line), line)
    }

    @Test
    fun tooLongPromptsAreTyped() = engine().use { engine ->
        val long = greedy("X".repeat(2000))
        val error = engine.generate(long).all().single() as GenEvent.Error
        assertEquals(ErrorCode.CONTEXT_FULL, error.code)
        val cause = error.cause as PromptTooLongException
        assertEquals(512, cause.contextTokens)
        assertEquals(runBlocking { engine.countTokens(long) }, cause.promptTokens)
        assertTrue(cause.promptTokens > 512 && cause.message!!.isNotEmpty())
        assertThrows(PromptTooLongException::class.java) { runBlocking { engine.generateInstrumented(long) } }
        assertEquals(EngineState.Ready, engine.state.value)
        assertEquals("red fox", engine.generate(greedy("R")).all().text())
    }

    @Test
    fun wrongOptionsAreErrorsThatSayWhy() = engine().use { engine ->
        val error = engine.generate(greedy("X").withSampling(Sampling(topP = 7f))).all().single() as GenEvent.Error
        assertEquals(ErrorCode.INVALID_ARGUMENT, error.code)
        assertTrue("top_p" in error.cause.message!!, error.cause.message)
        val many = Array(65) { "s$it" }
        assertInstanceOf(GenEvent.Error::class.java, engine.generate(greedy("X").withStop(*many)).all().single())
        assertInstanceOf(GenEvent.Error::class.java, engine.generate(greedy("X").withStop("")).all().single())
    }

    @Test
    fun aPartOfAFile(@TempDir folder: Path) {
        val file = folder.resolve("app.bin").toFile()
        file.outputStream().use { out ->
            out.write(ByteArray(4096) { 7 })
            out.write(scripted.readBytes())
            out.write(ByteArray(100) { 9 })
        }
        Engine(null, noMachine).use { engine ->
            FileInputStream(file).use { engine.loadBlocking(ModelSource.Descriptor(it.number(), 4096, scripted.length())) }
            assertEquals("Hi 🙂!", engine.generate(greedy("E")).all().text()) // the file is closed by now
        }
    }

    @Test
    fun filesThatCannotBeLoaded(@TempDir folder: Path) = Engine(null, noMachine).use { engine ->
        val bad = folder.resolve("bad.gguf").also { Files.write(it, ByteArray(500) { 1 }) }
        fun code(source: ModelSource) = assertThrows(MicaException::class.java) { engine.loadBlocking(source) }.code
        assertEquals(ErrorCode.IO_ERROR, code(ModelSource.File(File(folder.toFile(), "größe-你.gguf").path)))
        assertEquals(ErrorCode.BAD_FILE, code(ModelSource.File(bad.toString())))
        assertEquals(EngineState.Failed(ErrorCode.BAD_FILE), engine.state.value)
        assertEquals(ErrorCode.INVALID_ARGUMENT, code(ModelSource.File("a\u0000b")))
        assertTrue(code(ModelSource.Descriptor(-1)) in setOf(ErrorCode.IO_ERROR, ErrorCode.INVALID_ARGUMENT))
        engine.loadBlocking(source, EngineOptions(512, 1))
        assertEquals("red fox", engine.generate(greedy("R")).all().text())
        assertEquals(ErrorCode.IO_ERROR, code(ModelSource.File("no such file"))) // the model before is gone then
        assertThrows(IllegalStateException::class.java) { engine.info() }
        Unit
    }

    @Test
    fun repliesOfOneEngineWaitForEachOther() = engine().use { engine ->
        val texts = runBlocking {
            List(8) { i -> async { engine.generate(greedy(if (i % 2 == 0) "S" else "R")).toList().text() } }.awaitAll()
        }
        assertEquals(List(8) { if (it % 2 == 0) "alpha beta gamma delta" else "red fox" }, texts)
    }

    @Test
    fun twoEnginesAtOnce() {
        val engines = List(2) { engine() }
        val texts = runBlocking {
            engines.map { e -> async { List(20) { e.generate(greedy("S")).toList().text() } } }.awaitAll().flatten()
        }
        assertEquals(List(40) { "alpha beta gamma delta" }, texts)
        engines.forEach { it.close() }
    }

    @Test
    fun aFullContextIsTrimmedAndTold() = engine(endless).use { engine ->
        val events = engine.generate(greedy("X", 1500)).all()
        val trimmed = events.filterIsInstance<GenEvent.Notice>().map { it.notice }.filterIsInstance<NoticeKind.ContextTrimmed>()
        assertTrue(trimmed.size >= 3, "$trimmed")
        assertEquals((events.last() as GenEvent.Done).usage.droppedTokens, trimmed.sumOf { it.droppedTokens })
        assertEquals(1500, events.text().length)
    }

    @Test
    fun aPauseSuspendsAndResumes() = engine(endless).use { engine ->
        runBlocking {
            engine.pause()
            val events = async { engine.generate(greedy("X", 30)).toList() }
            engine.state.first { it == EngineState.Suspended }
            delay(100)
            assertEquals("", engine.accumulatedText.value)
            engine.resume()
            val kinds = events.await().filterIsInstance<GenEvent.Notice>().map { it.notice }
            assertEquals(listOf<NoticeKind>(NoticeKind.Suspended, NoticeKind.Resumed), kinds)
            assertEquals("x".repeat(30), engine.accumulatedText.value)
        }
    }

    @Test
    fun closeWhileAReplyWaits() = engine(endless).let { engine ->
        engine.pause()
        val last = runBlocking {
            val events = async { engine.generate(greedy("X")).toList() }
            engine.state.first { it == EngineState.Suspended }
            launch { engine.close() }
            events.await().last()
        }
        assertEquals(ErrorCode.CLOSED, (last as GenEvent.Error).code)
    }
}
