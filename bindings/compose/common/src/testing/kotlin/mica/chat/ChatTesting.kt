package mica.chat

import androidx.lifecycle.Lifecycle
import androidx.lifecycle.LifecycleOwner
import androidx.lifecycle.LifecycleRegistry
import androidx.lifecycle.ViewModelStore
import mica.Engine
import mica.EngineState
import mica.FakeMonitor
import mica.endless
import mica.greedy
import mica.noMachine
import mica.source

/** A chat with the scripted model, whose only device is what the test says: simulation. Its prompt is the last question; "X" has no end. */
class Chat(stopWhen: StopWhen = StopWhen.HIDDEN) : AutoCloseable {
    val monitor = FakeMonitor()
    val engine = Engine(monitor, noMachine)
    val model = ChatViewModel(engine, source, endless, stopWhen, graceMs = 0) { greedy(it.last().content, 100_000_000) }
    private val store = ViewModelStore().apply { put("chat", model) }

    /** What the native side has computed: the script of "X" is a character a token. */
    val computed get() = engine.accumulatedText.value.length
    val isWorking get() = engine.state.value == EngineState.Generating

    /** As an activity or a window does that is gone for good. */
    fun clear() = store.clear()

    override fun close() {
        clear()
        engine.close()
    }
}

/** A screen whose lifecycle the test moves. */
class FakeScreen : LifecycleOwner {
    override val lifecycle = LifecycleRegistry.createUnsafe(this)

    init {
        move(Lifecycle.State.RESUMED)
    }

    fun move(state: Lifecycle.State) {
        lifecycle.currentState = state
    }
}
