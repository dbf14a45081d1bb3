package mica

/** Where the weights are. They are mapped from there, never copied to the Java heap. */
sealed interface ModelSource {
    data class File(val path: String) : ModelSource

    /** [length] bytes (0: to the end) from [offset] of an open file: an uncompressed asset (AssetFileDescriptor), or a
     * ParcelFileDescriptor. The descriptor may be closed as soon as the engine is loaded. */
    data class Descriptor @JvmOverloads constructor(val fd: Int, val offset: Long = 0, val length: Long = 0) : ModelSource
}

/** What happens when a conversation reaches the end of the context. Numbers as in mica.h. */
enum class FullPolicy { ERROR, STOP, SHIFT }

/** What the governor aims at (docs/governor.md); NONE: there is no governor. */
enum class Objective(internal val number: Int) { NONE(-1), OFF(0), BURST(1), SUSTAINED(2), EFFICIENT(3) }

data class EngineOptions @JvmOverloads constructor(
    /** The most tokens of prompt and reply together; 0: what the model was trained for, at most 4096. Fixed from then on. */
    val contextTokens: Int = 0,
    /** 0: chosen by what the device has. */
    val threads: Int = 0,
    /** Tokens of a prompt that are computed in one step: how long a cancel may take while a prompt is read. */
    val chunkTokens: Int = 64,
    val fullPolicy: FullPolicy = FullPolicy.STOP,
    /** With SHIFT: tokens at the beginning that are never dropped. */
    val keepFirst: Int = 0,
    val objective: Objective = Objective.NONE,
    /** A reply waits while the app reports that it is in the background. */
    val pauseInBackground: Boolean = false,
    /** The most bytes that the system lets this app have; 0: not known. */
    val appLimitBytes: Long = 0,
)

data class ModelInfo(
    val architecture: String,
    val name: String,
    val kernels: String,
    val contextTokens: Int,
    val weights: Long,
    val weightBytes: Long,
    val fileBytes: Long,
)

sealed interface EngineState {
    /** No model is loaded, or no longer. */
    data object Idle : EngineState
    data class Loading(val progress: Double) : EngineState
    data object Ready : EngineState
    data object Generating : EngineState

    /** A reply waits until [Engine.resume], or until the app is in the foreground. */
    data object Suspended : EngineState

    /** The model could not be loaded. */
    data class Failed(val code: ErrorCode) : EngineState
}
