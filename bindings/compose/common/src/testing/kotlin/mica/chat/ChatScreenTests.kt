package mica.chat

import androidx.compose.runtime.CompositionLocalProvider
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.setValue
import androidx.compose.ui.graphics.ImageBitmap
import androidx.compose.ui.graphics.toPixelMap
import androidx.compose.ui.test.assertIsNotEnabled
import androidx.compose.ui.test.captureToImage
import androidx.compose.ui.test.junit4.v2.createComposeRule
import androidx.compose.ui.test.onAllNodesWithTag
import androidx.compose.ui.test.onAllNodesWithText
import androidx.compose.ui.test.onNodeWithTag
import androidx.compose.ui.test.onNodeWithText
import androidx.compose.ui.test.onRoot
import androidx.compose.ui.test.performClick
import androidx.compose.ui.test.performTextInput
import androidx.lifecycle.Lifecycle
import androidx.lifecycle.compose.LocalLifecycleOwner
import kotlinx.coroutines.runBlocking
import mica.AppReport
import mica.EngineState
import mica.ThermalStatus
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

/** The screen with a real engine: tests that any platform of the screen runs. */
abstract class ChatScreenTests {
    @get:Rule val rule = createComposeRule()
    private val screen = FakeScreen()
    private var shown by mutableStateOf(true)
    private var chat: Chat? = null

    abstract fun keep(picture: ImageBitmap, name: String)

    /** Lets the platform's main thread do what it has to, where the test is on it. */
    open fun idle() = Unit

    private fun start(stopWhen: StopWhen = StopWhen.HIDDEN): Chat {
        val chat = Chat(stopWhen).also { this.chat = it }
        rule.setContent { CompositionLocalProvider(LocalLifecycleOwner provides screen) { if (shown) ChatScreen(chat.model) } }
        return chat
    }

    @After
    fun close() {
        rule.runOnUiThread { chat?.close() }
    }

    private fun until(condition: () -> Boolean) = rule.waitUntil(timeoutMillis = 30_000) {
        idle()
        condition()
    }

    private fun move(state: Lifecycle.State) = rule.runOnUiThread { screen.move(state) }

    private fun ask(question: String) {
        until { has("send") }
        rule.onNodeWithTag("question").performTextInput(question)
        rule.onNodeWithTag("send").performClick()
    }

    private fun shows(text: String) = rule.onAllNodesWithText(text, substring = true).fetchSemanticsNodes().isNotEmpty()
    private fun has(tag: String) = rule.onAllNodesWithTag(tag).fetchSemanticsNodes().isNotEmpty()

    /** Asks for a text without end and waits until it grows on the screen. */
    private fun askWithoutEnd(chat: Chat) {
        ask("X")
        until { chat.computed > 20 && shows("xxxxxxxx") }
    }

    /** The native side has stopped: not one more token in a time in which hundreds would come, and the engine is free. */
    private fun assertStopped(chat: Chat) {
        until { chat.engine.state.value == EngineState.Ready }
        val computed = chat.computed
        repeat(40) {
            Thread.sleep(10)
            idle()
        }
        assertEquals(computed, chat.computed)
        assertEquals(EngineState.Ready, chat.engine.state.value)
    }

    private fun assertGoesOn(chat: Chat) {
        val computed = chat.computed
        until { chat.computed > computed + 100 }
        assertTrue(chat.isWorking)
    }

    @Test
    fun aClickStreamsText() {
        val chat = start()
        rule.onNodeWithTag("send").assertIsNotEnabled()
        ask("S")
        until { shows("alpha beta gamma delta") && shows("tokens/s") }
        rule.onNodeWithText("first token", substring = true).assertExists()
        ask("E") // its emoji is four tokens
        until { shows("Hi 🙂!") && has("send") }
        assertEquals(listOf("S", "alpha beta gamma delta", "E", "Hi 🙂!"), chat.model.state.value.lines.map { it.text })
        val picture = rule.onRoot().captureToImage()
        val pixels = picture.toPixelMap()
        val colors = HashSet<Int>()
        for (y in 0 until pixels.height step 3) for (x in 0 until pixels.width step 3) colors += pixels[x, y].hashCode()
        assertTrue("a picture of ${colors.size} colors", colors.size > 10)
        keep(picture, "chat")
    }

    @Test
    fun theStopButtonStopsTheNativeWork() {
        val chat = start()
        askWithoutEnd(chat)
        rule.onNodeWithTag("stop").performClick()
        assertStopped(chat)
        until { has("send") }
        val said = chat.model.state.value.lines.last()
        assertTrue("${chat.computed - said.text.length} tokens ahead of the screen", chat.computed - said.text.length <= 2)
        ask("R")
        until { shows("red fox") }
    }

    @Test
    fun aLifecycleBelowStartedStopsTheNativeWork() {
        val chat = start()
        askWithoutEnd(chat)
        move(Lifecycle.State.CREATED)
        assertStopped(chat)
        move(Lifecycle.State.RESUMED)
        until { has("send") }
        ask("R")
        until { shows("red fox") }
    }

    @Test
    fun leavingTheScreenStopsTheNativeWork() {
        val chat = start()
        askWithoutEnd(chat)
        rule.runOnUiThread { shown = false }
        rule.waitForIdle()
        assertStopped(chat)
    }

    /** As an app with a foreground service wants it; then the end of the view model is the end of the work. */
    @Test
    fun aReplyMayGoOnBehindAnotherScreen() {
        val chat = start(StopWhen.LEFT)
        askWithoutEnd(chat)
        move(Lifecycle.State.CREATED)
        assertGoesOn(chat)
        rule.runOnUiThread { shown = false }
        rule.waitForIdle()
        assertGoesOn(chat)
        rule.runOnUiThread { chat.clear() }
        assertStopped(chat)
    }

    @Test
    fun heatIsShown() {
        val chat = start()
        assertFalse(has("heat"))
        fun say(status: ThermalStatus) = runBlocking { chat.monitor.say(AppReport(thermal = status)) }
        say(ThermalStatus.SEVERE)
        until { shows("severe") }
        keep(rule.onRoot().captureToImage(), "heat")
        say(ThermalStatus.NONE)
        until { !has("heat") }
    }

    @Test
    fun sheddingGivesTheModelBackAndAQuestionBringsItAgain() {
        val chat = start()
        ask("R")
        until { shows("red fox") && has("send") }
        rule.runOnUiThread { chat.model.shed() }
        until { chat.engine.state.value == EngineState.Idle }
        ask("S")
        until { shows("alpha beta gamma delta") }
    }
}
