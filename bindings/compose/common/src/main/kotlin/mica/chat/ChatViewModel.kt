package mica.chat

import androidx.lifecycle.ViewModel
import androidx.lifecycle.viewModelScope
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.SharingStarted
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.collectLatest
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.stateIn
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import mica.DeviceState
import mica.Engine
import mica.EngineOptions
import mica.EngineState
import mica.GenEvent
import mica.GenRequest
import mica.Message
import mica.ModelSource

/** What ends a reply, besides its own end and the stop button. */
enum class StopWhen {
    /** The view model is cleared: the screen is gone for good. On Android a reply that goes on behind another app needs a foreground
     * service. */
    LEFT,

    /** Nobody looks any more: the screen is gone, or its lifecycle is below STARTED. */
    HIDDEN,
}

enum class Author { USER, MODEL }

data class Line(val id: Int, val author: Author, val text: String)

/** READING: the model reads the question, WRITING: [ChatViewModel.reply] grows. */
enum class Phase { IDLE, READING, WRITING }

data class ChatState(
    val lines: List<Line> = emptyList(),
    val phase: Phase = Phase.IDLE,
    val speed: Speed? = null,
    val error: String? = null,
)

/**
 * One conversation with one engine, for a screen. A reply is a coroutine of this view model: when that is cancelled, the engine's native
 * work ends within one token. Collecting with a lifecycle alone would not do that: it stops the looking, not the work.
 *
 * Its functions are of the main thread. The engine is the caller's: `addCloseable(engine)` ties it to this.
 *
 * @param graceMs how long nobody may look before [StopWhen.HIDDEN] holds: a screen that turns is away for a moment.
 * @param request what is asked, given the conversation.
 */
class ChatViewModel(
    private val engine: Engine,
    private val source: ModelSource,
    private val options: EngineOptions = EngineOptions(contextTokens = 2048),
    stopWhen: StopWhen = StopWhen.HIDDEN,
    private val graceMs: Long = 1000,
    private val request: (List<Message>) -> GenRequest = { GenRequest.chat(it).withMaxTokens(512) },
) : ViewModel() {
    private val mutable = MutableStateFlow(ChatState())
    private var job: Job? = null
    private var nextId = 0

    /** Changes a few times a second at most. */
    val state: StateFlow<ChatState> = mutable.asStateFlow()

    /** The text of the reply under way, at most once a frame. */
    val reply: StateFlow<String> get() = engine.accumulatedText
    val engineState: StateFlow<EngineState> get() = engine.state

    /** The machine, once a second while somebody looks. */
    val device: StateFlow<DeviceState?> = flow {
        while (true) {
            emit(engine.device.read())
            delay(1000)
        }
    }.flowOn(Dispatchers.IO).stateIn(viewModelScope, SharingStarted.WhileSubscribed(), null)

    init {
        if (stopWhen == StopWhen.HIDDEN) viewModelScope.launch { stopWhileHidden() }
    }

    private suspend fun stopWhileHidden() =
        mutable.subscriptionCount.map { it > 0 }.distinctUntilChanged().collectLatest { seen ->
            if (!seen) {
                delay(graceMs)
                stop()
            }
        }

    /** Does nothing while a reply is under way. Loads the model first, where it is not there. */
    fun ask(question: String) {
        if (question.isBlank() || mutable.value.phase != Phase.IDLE) return
        val asked = line(Author.USER, question.trim())
        mutable.update { it.copy(lines = it.lines + asked, phase = Phase.READING, speed = null, error = null) }
        val text = StringBuilder() // what is under way is shown from the engine; this is for the list, in the end
        begin { answer(text) }.invokeOnCompletion { end(text) }
    }

    /** Opens the model before the first question. */
    fun prepare() {
        if (job?.isActive != true) begin { loadIfNeeded() }
    }

    /** The native work, not only the showing. */
    fun stop() {
        job?.cancel()
    }

    /** The system wants memory back: between replies the model goes, and comes back with the next question. */
    fun shed() {
        if (job?.isActive != true) begin { engine.unload() }
    }

    private fun begin(work: suspend () -> Unit): Job {
        val before = job
        return viewModelScope.launch {
            before?.join()
            try {
                work()
            } catch (e: CancellationException) {
                throw e
            } catch (e: Exception) {
                mutable.update { it.copy(error = e.message ?: "$e") }
            }
        }.also { job = it }
    }

    private suspend fun loadIfNeeded() {
        if (engine.state.value.let { it is EngineState.Idle || it is EngineState.Failed }) engine.load(source, options)
    }

    private suspend fun answer(text: StringBuilder) {
        loadIfNeeded()
        val meter = SpeedMeter()
        withContext(Dispatchers.Default) { // a main thread that is busy with frames would make the engine wait
            engine.generate(request(conversation())).collect { take(it, text, meter) }
        }
    }

    private fun take(event: GenEvent, text: StringBuilder, meter: SpeedMeter) {
        when (event) {
            is GenEvent.Token -> {
                text.append(event.text)
                meter.token(event.tokens)?.let { speed -> mutable.update { it.copy(phase = Phase.WRITING, speed = speed) } }
            }
            is GenEvent.Done -> mutable.update { it.copy(speed = Speed(event.timings.ttftMs, event.timings.decodeTps)) }
            is GenEvent.Error -> throw event.cause
            is GenEvent.Notice -> Unit // the banner shows the device itself
        }
    }

    private fun end(text: StringBuilder) {
        val said = if (text.isEmpty()) emptyList() else listOf(line(Author.MODEL, text.toString()))
        mutable.update { it.copy(lines = it.lines + said, phase = Phase.IDLE) }
    }

    private fun line(author: Author, text: String) = Line(nextId++, author, text)

    private fun conversation() =
        mutable.value.lines.map { Message(if (it.author == Author.USER) "user" else "assistant", it.text) }
}
