package mica.chat

import androidx.compose.ui.unit.dp
import androidx.compose.ui.window.Window
import androidx.compose.ui.window.application
import androidx.compose.ui.window.rememberWindowState
import androidx.lifecycle.ViewModelStore
import kotlin.system.exitProcess
import mica.Engine
import mica.ModelSource

/** A window to chat with a model. Closing it ends the reply and gives the model back. */
fun main(args: Array<String>) {
    if (args.size != 1) {
        System.err.println("usage: MainKt MODEL.gguf")
        exitProcess(2)
    }
    val engine = Engine()
    val model = ChatViewModel(engine, ModelSource.File(args[0])).apply { addCloseable(engine) }
    model.prepare()
    chatWindow(model)
}

internal fun chatWindow(model: ChatViewModel) {
    val store = ViewModelStore().apply { put("chat", model) }
    application {
        val close = {
            store.clear()
            exitApplication()
        }
        Window(close, rememberWindowState(width = 420.dp, height = 640.dp), title = "mica") { ChatScreen(model) }
    }
}
