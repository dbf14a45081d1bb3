package mica.chat

import androidx.compose.foundation.background
import androidx.compose.foundation.layout.Arrangement
import androidx.compose.foundation.layout.Box
import androidx.compose.foundation.layout.Column
import androidx.compose.foundation.layout.Row
import androidx.compose.foundation.layout.fillMaxSize
import androidx.compose.foundation.layout.fillMaxWidth
import androidx.compose.foundation.layout.padding
import androidx.compose.foundation.layout.widthIn
import androidx.compose.foundation.lazy.LazyColumn
import androidx.compose.foundation.lazy.items
import androidx.compose.foundation.lazy.rememberLazyListState
import androidx.compose.foundation.shape.RoundedCornerShape
import androidx.compose.material.Button
import androidx.compose.material.MaterialTheme
import androidx.compose.material.OutlinedTextField
import androidx.compose.material.Surface
import androidx.compose.material.Text
import androidx.compose.runtime.Composable
import androidx.compose.runtime.LaunchedEffect
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.remember
import androidx.compose.runtime.setValue
import androidx.compose.ui.Alignment
import androidx.compose.ui.Modifier
import androidx.compose.ui.draw.clip
import androidx.compose.ui.graphics.Color
import androidx.compose.ui.platform.testTag
import androidx.compose.ui.unit.dp
import androidx.lifecycle.compose.collectAsStateWithLifecycle
import java.util.Locale
import kotlinx.coroutines.flow.StateFlow
import mica.DeviceState
import mica.EngineState
import mica.ThermalStatus

/** The whole screen. The same on a desktop and on Android. */
@Composable
fun ChatScreen(model: ChatViewModel) {
    val state by model.state.collectAsStateWithLifecycle()
    val engine by model.engineState.collectAsStateWithLifecycle()
    val device by model.device.collectAsStateWithLifecycle()
    MaterialTheme {
        Surface(Modifier.fillMaxSize()) {
            Column {
                HeatBanner(device)
                Lines(state, model.reply, Modifier.weight(1f))
                Status(state, engine)
                Question(state.phase != Phase.IDLE, model::ask, model::stop)
            }
        }
    }
}

/** What a person should know of the machine; nothing where it is well. */
internal fun heatText(device: DeviceState): String? = when {
    device.thermal == ThermalStatus.UNKNOWN -> if (device.throttled) "The device slows itself down" else null
    device.thermal >= ThermalStatus.SEVERE -> "The device is hot (${device.thermal.name.lowercase()}): replies are slower"
    device.thermal >= ThermalStatus.MODERATE -> "The device is warm: replies may slow down"
    else -> null
}

@Composable
private fun HeatBanner(device: DeviceState?) {
    val text = device?.let(::heatText) ?: return
    Text(text, Modifier.fillMaxWidth().background(Color(0xFFFFE0B2)).padding(12.dp).testTag("heat"), color = Color(0xFF5D2E00))
}

/** Newest at the bottom, where the list stays. */
@Composable
private fun Lines(state: ChatState, reply: StateFlow<String>, modifier: Modifier) {
    val list = rememberLazyListState()
    LaunchedEffect(state.lines.size, state.phase) { list.scrollToItem(0) } // else it stays with what was at the bottom before
    LazyColumn(
        modifier.fillMaxWidth().padding(horizontal = 12.dp).testTag("lines"),
        state = list,
        reverseLayout = true,
        verticalArrangement = Arrangement.spacedBy(8.dp, Alignment.Bottom),
    ) {
        if (state.phase != Phase.IDLE) item(key = "reply") { Reply(state.phase, reply) }
        items(state.lines.asReversed(), key = { it.id }) { Bubble(it.author, it.text) }
    }
}

/** What is laid out of a text that grows, each frame anew; the whole is shown once it is there. */
private const val LIVE_CHARACTERS = 2000

/** Alone with the text that changes each frame, so that nothing else is composed anew. */
@Composable
private fun Reply(phase: Phase, reply: StateFlow<String>) {
    val text by reply.collectAsStateWithLifecycle()
    Bubble(Author.MODEL, if (phase == Phase.WRITING) text.takeLast(LIVE_CHARACTERS) else "…")
}

@Composable
private fun Bubble(author: Author, text: String) {
    val own = author == Author.USER
    Box(Modifier.fillMaxWidth().padding(vertical = 2.dp), contentAlignment = if (own) Alignment.CenterEnd else Alignment.CenterStart) {
        Text(
            text,
            Modifier.widthIn(max = 320.dp).clip(RoundedCornerShape(12.dp))
                .background(if (own) Color(0xFFD7E3FF) else Color(0xFFEEEEEE)).padding(10.dp),
            color = Color(0xFF202020),
        )
    }
}

/** "first token 31 ms · 120.4 tokens/s", or what the engine does instead, or what went wrong. */
internal fun statusText(state: ChatState, engine: EngineState): String = when {
    state.error != null -> state.error
    engine is EngineState.Loading -> "loading the model: ${(100 * engine.progress).toInt()} %"
    engine is EngineState.Suspended -> "waiting"
    state.speed != null -> state.speed.let {
        val rate = if (it.tokensPerSecond.isNaN()) "" else String.format(Locale.ROOT, " · %.1f tokens/s", it.tokensPerSecond)
        String.format(Locale.ROOT, "first token %.0f ms%s", it.ttftMs, rate)
    }
    else -> ""
}

@Composable
private fun Status(state: ChatState, engine: EngineState) {
    val color = if (state.error != null) MaterialTheme.colors.error else Color.Gray
    val place = Modifier.padding(horizontal = 16.dp, vertical = 4.dp).testTag("status")
    Text(statusText(state, engine), place, color = color, style = MaterialTheme.typography.caption)
}

@Composable
private fun Question(busy: Boolean, ask: (String) -> Unit, stop: () -> Unit) {
    var text by remember { mutableStateOf("") }
    Row(Modifier.fillMaxWidth().padding(12.dp), verticalAlignment = Alignment.CenterVertically) {
        OutlinedTextField(text, { text = it }, Modifier.weight(1f).testTag("question"), placeholder = { Text("Ask something") })
        if (busy) {
            Button(stop, Modifier.padding(start = 8.dp).testTag("stop")) { Text("Stop") }
        } else {
            Button({ ask(text); text = "" }, Modifier.padding(start = 8.dp).testTag("send"), enabled = text.isNotBlank()) { Text("Send") }
        }
    }
}
