package mica

import java.io.File
import java.io.FileInputStream
import java.nio.file.Files
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking

/** What the tests of this binding and of the chat share. The scripted model (tests/data/cases/_common/scripted.py) continues the prompt "E" with "Hi 🙂!", one byte of the
 * emoji a token, "C" with "zh你試#", "S" with "alpha beta gamma delta", "R" with "red fox" and "X" with x without end. Its context is 512. */
val data = File(System.getProperty("mica.data"))
val scripted = File(data, "cases/_common/scripted.gguf")
val source = ModelSource.File(scripted.path)

/** No files of /proc and /sys: what a real machine says at the moment must not decide a test. */
val noMachine: String = Files.createTempDirectory("mica-no-machine").toFile().apply { deleteOnExit() }.path

fun engine(options: EngineOptions = EngineOptions(contextTokens = 512, threads = 1), monitor: DeviceMonitor? = null): Engine =
    Engine(monitor, noMachine).apply { loadBlocking(source, options) }

fun greedy(prompt: String, maxTokens: Int = -1): GenRequest =
    GenRequest.prompt(prompt).withSampling(Sampling.GREEDY).withMaxTokens(maxTokens)

fun Flow<GenEvent>.all(): List<GenEvent> = runBlocking { toList() }

fun List<GenEvent>.text(): String = filterIsInstance<GenEvent.Token>().joinToString("") { it.text }

fun List<GenEvent>.tokens(): List<GenEvent.Token> = filterIsInstance<GenEvent.Token>()

fun GenEvent.isTerminal() = this is GenEvent.Done || this is GenEvent.Error

/** The number of an open file, as Android's ParcelFileDescriptor.getFd() gives it. */
fun FileInputStream.number(): Int = java.io.FileDescriptor::class.java.getDeclaredField("fd").run {
    isAccessible = true
    getInt(fd)
}

val endless = EngineOptions(contextTokens = 512, threads = 1, fullPolicy = FullPolicy.SHIFT)

/** A monitor whose app says what the test wants. Simulation: no device is heated. */
class FakeMonitor : DeviceMonitor {
    private val flow = MutableSharedFlow<AppReport>(replay = 1)
    override fun reports() = flow
    suspend fun say(report: AppReport) = flow.emit(report)
}
