package mica

import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import java.util.function.Consumer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.cancel
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext

/**
 * One model, one conversation at a time.
 *
 *     Engine().use { engine ->
 *         engine.load(ModelSource.File(path), EngineOptions(contextTokens = 2048))
 *         engine.generate(GenRequest.chat("Hello")).collect { if (it is GenEvent.Token) print(it.text) }
 *     }
 *
 * A reply is pulled: the native side computes one token when the collector wants the next event, on a thread that this engine has for
 * itself, and calls nothing back. So events come in order, none is dropped, and where the collector is slow the engine waits. Native
 * memory is not the Java heap's: [close] gives it back, at any time and from any thread.
 *
 * @param monitor what the app knows about its device; null: only what the kernel's files tell.
 * @param sysroot prefix of those files, for tests.
 * @param hints hears how long tokens take, where the engine is loaded with an [Objective] that aims at a speed.
 */
class Engine @JvmOverloads constructor(
    monitor: DeviceMonitor? = null,
    sysroot: String = "",
    private val hints: PerformanceHints? = null,
) : AutoCloseable {
    private enum class Hold { PAUSED, BACKGROUND }

    private val threadName = "mica-engine-${number.getAndIncrement() % 1000}" // 15 characters, as many as Linux keeps
    private val thread = dedicatedThread(threadName)
    private val dispatcher = thread.asCoroutineDispatcher()
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    private val turn = Mutex() // loading and replies, one after the other
    private val holds = MutableStateFlow(emptySet<Hold>())
    private val stateFlow = MutableStateFlow<EngineState>(EngineState.Idle)
    private val reply = ReplyText()
    private val lock = Any() // of the next two
    private var handle = 0L // 0: no model
    private var closed = false
    @Volatile private var options = EngineOptions()

    /** How often a reply asks whether the device slows itself down. */
    internal var deviceIntervalNs = 1_000_000_000L

    /** The device as this engine sees it. Closed with the engine. */
    val device = Device(sysroot)

    val state: StateFlow<EngineState> = stateFlow.asStateFlow()

    /** The text of the reply under way, or of the last one: for screens, at most once a frame. */
    val accumulatedText: StateFlow<String> get() = reply.flow

    init {
        monitor?.let { scope.launch { it.reports().collect(::take) } }
    }

    // ---- Loading ----

    /** Opens a model in place of the one before. Waits for a reply under way; cancelling stops it. Throws [MicaException]. */
    suspend fun load(source: ModelSource, options: EngineOptions = EngineOptions()) = withContext(dispatcher) {
        turn.withLock {
            Native.engineClose(swap(0))
            this@Engine.options = options
            show(EngineState.Loading(0.0))
            val job = currentCoroutineContext()
            try {
                val opened = open(source, options) { done ->
                    show(EngineState.Loading(done))
                    job.isActive
                }
                adopt(opened)
                show(EngineState.Ready)
            } catch (e: MicaException) {
                job.ensureActive() // then that is why it failed
                show(EngineState.Failed(e.code))
                throw e
            } finally {
                if (stateFlow.value is EngineState.Loading) show(EngineState.Idle)
            }
        }
    }

    /** Gives the model and its memory back, once a reply under way has ended; [load] brings one again. */
    suspend fun unload() = withContext(dispatcher) {
        turn.withLock {
            Native.engineClose(swap(0))
            show(EngineState.Idle)
        }
    }

    /** For Java. */
    @JvmOverloads
    fun loadBlocking(source: ModelSource, options: EngineOptions = EngineOptions()) = runBlocking { load(source, options) }

    private fun open(source: ModelSource, o: EngineOptions, watcher: LoadWatcher): Long {
        val path = (source as? ModelSource.File)?.path?.toByteArray(Charsets.UTF_8)
        val part = source as? ModelSource.Descriptor
        return Native.engineOpen(
            path, part?.fd ?: -1, part?.offset ?: 0, part?.length ?: 0, watcher, device.handle, o.contextTokens, o.threads,
            o.chunkTokens, o.fullPolicy.ordinal, o.keepFirst, o.objective.number, 0, o.appLimitBytes,
        )
    }

    /** What is loaded. */
    fun info(): ModelInfo {
        val handle = loaded()
        val texts = String(Native.engineInfo(handle), Charsets.UTF_8).split('\u0000')
        val figures = Native.engineFigures(handle)
        return ModelInfo(texts[0], texts[1], texts[2], figures[0].toInt(), figures[1], figures[2], figures[3])
    }

    /** How many tokens the prompt of a request has. */
    suspend fun countTokens(request: GenRequest): Int =
        withContext(dispatcher) { Native.countTokens(loaded(), request.bytes(), request.isChat) }

    // ---- Replies ----

    /**
     * A reply to [request], made anew for each collector, one after the other: do not collect one of an engine inside another of the
     * same engine. It ends with exactly one [GenEvent.Done] or [GenEvent.Error]; a prompt that is too long is an error with a
     * [PromptTooLongException]. Cancelling the collector stops the native work after at most one token, or one chunk of the prompt.
     */
    fun generate(request: GenRequest): Flow<GenEvent> =
        flow { turn.withLock { reply(loaded(), request) } }.flowOn(dispatcher).buffer(Channel.RENDEZVOUS)

    /** The whole reply in one line: `ttft_ms=…;tpot_ms=…;prompt_n=…;gen_n=…;text=…`. Throws what [GenEvent.Error] would have. */
    suspend fun generateInstrumented(request: GenRequest): String {
        val text = StringBuilder()
        var done: GenEvent.Done? = null
        generate(request).collect {
            when (it) {
                is GenEvent.Token -> text.append(it.text)
                is GenEvent.Done -> done = it
                is GenEvent.Error -> throw it.cause
                is GenEvent.Notice -> Unit
            }
        }
        return metricsLine(checkNotNull(done), text)
    }

    /** For Java: the events of a reply on the calling thread. An exception from [onEvent] stops it. */
    fun generateBlocking(request: GenRequest, onEvent: Consumer<GenEvent>) =
        runBlocking { generate(request).collect(onEvent::accept) }

    private suspend fun FlowCollector<GenEvent>.reply(handle: Long, request: GenRequest) {
        reply.start()
        show(EngineState.Generating)
        val end = try {
            steps(handle, request)
        } catch (e: CancellationException) {
            throw e
        } catch (e: MicaException) {
            GenEvent.Error(e.code, e)
        } catch (e: IllegalStateException) {
            if (!isClosed()) throw e
            GenEvent.Error(ErrorCode.CLOSED, e)
        } finally {
            Native.replyCancel(handle) // nothing, where it has ended
            reply.publish()
            show(EngineState.Ready)
        }
        emit(end)
    }

    private suspend fun FlowCollector<GenEvent>.steps(handle: Long, request: GenRequest): GenEvent.Done {
        Native.replySubmit(
            handle, request.bytes(), request.isChat, request.maxTokens, request.sampling.figures(), request.sampling.seed,
            request.stopBytes(),
        )
        val decoder = Utf8Decoder()
        val figures = LongArray(Native.STEP_FIGURES)
        val watch = Watch()
        hinting(handle).use { hinting ->
            do {
                waitWhileHeld()
                currentCoroutineContext().ensureActive()
                watch.heat()?.let { emit(GenEvent.Notice(it)) }
                tell(decoder.decode(step(handle, figures, hinting)), figures)
                watch.context(figures[Native.DROPPED])?.let { emit(GenEvent.Notice(it)) }
            } while (figures[Native.RUNNING] != 0L)
        }
        tell(decoder.finish(), figures)
        val result = DoubleArray(Native.RESULT_FIGURES)
        val reason = String(Native.replyResult(handle, result), Charsets.US_ASCII)
        val receipt = String(Native.replyReceipt(handle), Charsets.UTF_8)
        return Figures(result).let { GenEvent.Done(reason, it.usage(), it.timings(), receipt) }
    }

    private fun hinting(handle: Long): Hinting? = hints?.takeIf { options.objective != Objective.NONE }?.let { hints ->
        Hinting(hints, { threadsNamed(threadName) }) { GovernorFigures(Native.engineGovernor(handle)) }
    }

    private fun step(handle: Long, figures: LongArray, hinting: Hinting?): ByteArray {
        val tokens = figures[Native.TOKENS]
        val begin = System.nanoTime()
        val text = Native.replyStep(handle, figures)
        hinting?.step(begin, System.nanoTime(), figures[Native.TOKENS] > tokens)
        return text
    }

    private suspend fun FlowCollector<GenEvent>.tell(piece: String, figures: LongArray) {
        if (piece.isEmpty()) return
        reply.append(piece)
        emit(GenEvent.Token(piece, figures[Native.TOKENS].toInt()))
    }

    /** What changed since the last step, as notices. */
    private inner class Watch {
        private var dropped = 0L
        private var throttled = false
        private var nextNs = System.nanoTime()

        fun context(now: Long): NoticeKind? {
            val before = dropped
            dropped = now
            return if (now > before) NoticeKind.ContextTrimmed((now - before).toInt()) else null
        }

        fun heat(): NoticeKind? {
            val time = System.nanoTime()
            if (time < nextNs) return null
            nextNs = time + deviceIntervalNs
            val now = device.read()
            if (now.throttled == throttled) return null
            throttled = now.throttled
            return NoticeKind.Throttled(throttled, now.thermal)
        }
    }

    // ---- Waiting ----

    /** The reply under way, and each later one, waits before its next token until [resume]. */
    fun pause() = holds.update { it + Hold.PAUSED }
    fun resume() = holds.update { it - Hold.PAUSED }

    private suspend fun FlowCollector<GenEvent>.waitWhileHeld() {
        if (holds.value.isEmpty()) return
        show(EngineState.Suspended)
        emit(GenEvent.Notice(NoticeKind.Suspended))
        holds.first { it.isEmpty() }
        show(EngineState.Generating)
        emit(GenEvent.Notice(NoticeKind.Resumed))
    }

    private fun take(report: AppReport) {
        device.report(report)
        report.foreground?.let { inFront ->
            holds.update { if (inFront || !options.pauseInBackground) it - Hold.BACKGROUND else it + Hold.BACKGROUND }
        }
    }

    // ---- The handle, and closing ----

    /** Waits for at most one step of a reply under way, whose flow then ends with [ErrorCode.CLOSED]. Twice is fine. */
    override fun close() {
        val last = synchronized(lock) {
            closed = true
            handle.also { handle = 0 }
        }
        scope.cancel()
        Native.engineClose(last)
        device.close()
        holds.value = emptySet()
        stateFlow.value = EngineState.Idle
        thread.setKeepAliveTime(1, TimeUnit.MILLISECONDS)
    }

    private fun isClosed() = synchronized(lock) { closed }

    private fun loaded(): Long = synchronized(lock) {
        check(!closed) { "this engine is closed" }
        check(handle != 0L) { "no model is loaded: call load() first" }
        handle
    }

    private fun swap(next: Long): Long = synchronized(lock) {
        check(!closed) { "this engine is closed" }
        handle.also { handle = next }
    }

    /** An engine that was closed while its model was being opened keeps nothing. */
    private fun adopt(opened: Long) {
        try {
            swap(opened)
        } catch (e: IllegalStateException) {
            Native.engineClose(opened)
            throw e
        }
    }

    /** After the end there is only Idle. */
    private fun show(next: EngineState) = synchronized(lock) { if (!closed) stateFlow.value = next }

    private companion object {
        val number = AtomicInteger() // of the next engine

        /** Ends when it has nothing to do for a while, and takes work at any time: a reply that is cut off by close() has still to end. */
        fun dedicatedThread(name: String) =
            ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, LinkedBlockingQueue()) { Thread(it, name).apply { isDaemon = true } }
                .apply { allowCoreThreadTimeOut(true) }
    }
}
