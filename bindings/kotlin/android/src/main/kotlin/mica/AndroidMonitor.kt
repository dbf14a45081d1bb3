package mica

import android.app.ActivityManager
import android.content.BroadcastReceiver
import android.content.ComponentCallbacks2
import android.content.Context
import android.content.Intent
import android.content.IntentFilter
import android.content.res.Configuration
import android.os.BatteryManager
import android.os.Build
import android.os.PowerManager
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.flow.emptyFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.merge

/**
 * UNBUILT here, as all in this folder. What Android's services say: thermal status and memory trims as they come, the rest once a second (getThermalHeadroom() gives NaN when
 * it is asked more often). What is registered is taken back when the engine is closed.
 *
 * @param foreground whether the app is in front, e.g. of ProcessLifecycleOwner; null: what the system says of the process, in which a
 *   foreground service counts as in front.
 */
class AndroidMonitor @JvmOverloads constructor(context: Context, private val foreground: Flow<Boolean>? = null) : DeviceMonitor {
    private val app = context.applicationContext
    private val power = app.getSystemService(PowerManager::class.java)

    override fun reports(): Flow<AppReport> =
        merge(everySecond(), heat(), trims(), foreground?.map { AppReport(foreground = it) } ?: emptyFlow())

    private fun everySecond() = flow {
        while (true) {
            emit(now())
            delay(1000)
        }
    }

    private fun heat(): Flow<AppReport> = callbackFlow {
        if (Build.VERSION.SDK_INT >= 29) {
            val listener = PowerManager.OnThermalStatusChangedListener { trySend(AppReport(thermal = ThermalStatus.entries[it])) }
            power.addThermalStatusListener(app.mainExecutor, listener)
            awaitClose { power.removeThermalStatusListener(listener) }
        } else {
            awaitClose {}
        }
    }

    private fun trims(): Flow<AppReport> = callbackFlow {
        val callbacks = object : ComponentCallbacks2 {
            override fun onTrimMemory(level: Int) {
                trySend(AppReport(trim = trim(level)))
            }

            override fun onConfigurationChanged(newConfig: Configuration) = Unit

            override fun onLowMemory() {
                trySend(AppReport(trim = TrimLevel.CRITICAL))
            }
        }
        app.registerComponentCallbacks(callbacks)
        awaitClose { app.unregisterComponentCallbacks(callbacks) }
    }

    private fun now(): AppReport {
        val battery = app.registerReceiver(null as BroadcastReceiver?, IntentFilter(Intent.ACTION_BATTERY_CHANGED))
        val process = ActivityManager.RunningAppProcessInfo().also(ActivityManager::getMyMemoryState)
        val inFront = process.importance <= ActivityManager.RunningAppProcessInfo.IMPORTANCE_FOREGROUND_SERVICE
        return AppReport(
            thermal = if (Build.VERSION.SDK_INT >= 29) ThermalStatus.entries[power.currentThermalStatus] else ThermalStatus.UNKNOWN,
            headroom = if (Build.VERSION.SDK_INT >= 30) power.getThermalHeadroom(10).toDouble() else Double.NaN,
            powerSave = power.isPowerSaveMode,
            foreground = if (foreground == null) inFront else null,
            trim = trim(process.lastTrimLevel), // which goes back to 0 without a call
            batteryLevel = battery?.let { level(it) } ?: Double.NaN,
            battery = battery?.let { status(it) } ?: BatteryStatus.UNKNOWN,
            onMains = battery?.let { it.getIntExtra(BatteryManager.EXTRA_PLUGGED, 0) != 0 },
        )
    }

    private fun level(battery: Intent): Double {
        val level = battery.getIntExtra(BatteryManager.EXTRA_LEVEL, -1)
        val scale = battery.getIntExtra(BatteryManager.EXTRA_SCALE, 0)
        return if (level >= 0 && scale > 0) level.toDouble() / scale else Double.NaN
    }

    private fun status(battery: Intent): BatteryStatus =
        when (battery.getIntExtra(BatteryManager.EXTRA_STATUS, BatteryManager.BATTERY_STATUS_UNKNOWN)) {
            BatteryManager.BATTERY_STATUS_DISCHARGING -> BatteryStatus.DISCHARGING
            BatteryManager.BATTERY_STATUS_CHARGING -> BatteryStatus.CHARGING
            BatteryManager.BATTERY_STATUS_FULL -> BatteryStatus.FULL
            BatteryManager.BATTERY_STATUS_NOT_CHARGING -> BatteryStatus.IDLE
            else -> BatteryStatus.UNKNOWN
        }

    /** Numbers of ComponentCallbacks2: 5, 10, 15 in the foreground, 40, 60, 80 behind; 20 says only that the screen is gone. */
    private fun trim(level: Int): TrimLevel = when (level) {
        0, 20 -> TrimLevel.NONE
        5, 40 -> TrimLevel.MODERATE
        10, 60 -> TrimLevel.LOW
        15, 80 -> TrimLevel.CRITICAL
        else -> TrimLevel.UNKNOWN
    }
}
