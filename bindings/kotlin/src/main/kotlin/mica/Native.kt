package mica

/** Hears how far the opening of a model is, from 0 to 1. False stops it. */
internal fun interface LoadWatcher {
    fun onProgress(done: Double): Boolean
}

/**
 * The native library's functions, which register themselves when it is loaded: `libmica_jni` from the app's libraries, or the file that
 * the system property `mica.library` names. Text crosses as UTF-8 in byte arrays. Handles are numbers that the native side checks:
 * one that is closed is an [IllegalStateException], and a call waits while another thread is in the same engine.
 */
internal object Native {
    /** What [replyStep] tells, by index. */
    const val RUNNING = 0
    const val TOKENS = 1
    const val PROMPT_DONE = 2
    const val PROMPT_TOTAL = 3
    const val DROPPED = 4
    const val STEP_FIGURES = 5

    const val RESULT_FIGURES = 14

    init {
        val file = System.getProperty("mica.library")
        if (file != null) System.load(file) else System.loadLibrary("mica_jni")
    }

    @JvmStatic external fun engineOpen(
        path: ByteArray?, fd: Int, offset: Long, length: Long, watcher: LoadWatcher?, device: Long, context: Int, threads: Int,
        chunk: Int, policy: Int, keepFirst: Int, objective: Int, memoryBudget: Long, appLimit: Long,
    ): Long
    @JvmStatic external fun engineClose(handle: Long)
    @JvmStatic external fun engineInfo(handle: Long): ByteArray
    @JvmStatic external fun engineFigures(handle: Long): LongArray
    @JvmStatic external fun engineGovernor(handle: Long): DoubleArray
    @JvmStatic external fun openHandles(): Int

    @JvmStatic external fun replySubmit(
        handle: Long, text: ByteArray, chat: Boolean, maxTokens: Int, sampling: FloatArray, seed: Long, stop: Array<ByteArray>,
    ): Int
    @JvmStatic external fun countTokens(handle: Long, text: ByteArray, chat: Boolean): Int
    @JvmStatic external fun replyStep(handle: Long, out: LongArray): ByteArray
    @JvmStatic external fun replyCancel(handle: Long)
    @JvmStatic external fun replyResult(handle: Long, out: DoubleArray): ByteArray
    @JvmStatic external fun replyReceipt(handle: Long): ByteArray

    @JvmStatic external fun deviceOpen(sysroot: ByteArray): Long
    @JvmStatic external fun deviceClose(handle: Long)
    @JvmStatic external fun deviceReport(
        handle: Long, thermal: Int, headroom: Double, powerSave: Int, foreground: Int, trim: Int, batteryLevel: Double, battery: Int,
        onMains: Int,
    )
    @JvmStatic external fun deviceRead(handle: Long): DoubleArray
}
