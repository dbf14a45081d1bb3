package mica

import android.annotation.TargetApi
import android.content.Context
import android.os.Build
import android.os.PerformanceHintManager

/** UNBUILT here, as all in this folder. Android's PerformanceHintManager (ADPF): there from Android 12 on, and only on devices whose
 * maker supports it. */
class AndroidHints(context: Context) : PerformanceHints {
    private val app = context.applicationContext

    override fun open(threads: IntArray, targetNs: Long): PerformanceSession? =
        if (Build.VERSION.SDK_INT >= 31) sessionOf(app, threads, targetNs) else null
}

@TargetApi(31)
private fun sessionOf(app: Context, threads: IntArray, targetNs: Long): PerformanceSession? {
    val manager: PerformanceHintManager? = app.getSystemService(PerformanceHintManager::class.java)
    val session = try {
        manager?.createHintSession(threads, targetNs)
    } catch (e: IllegalArgumentException) {
        null // one of the threads has just ended
    }
    return session?.let(::AndroidHintSession)
}

@TargetApi(31)
private class AndroidHintSession(private val session: PerformanceHintManager.Session) : PerformanceSession {
    override fun target(ns: Long) = session.updateTargetWorkDuration(ns)
    override fun report(ns: Long) = session.reportActualWorkDuration(ns)
    override fun close() = session.close()
}
