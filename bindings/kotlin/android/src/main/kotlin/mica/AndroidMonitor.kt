package mica

import android.app.ActivityManager
import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.content.IntentFilter
import android.os.BatteryManager
import android.os.Build
import android.os.PowerManager
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/**
 * UNBUILT here, as all in this folder: what Android's services say, once a second. getThermalHeadroom() gives NaN when it is asked more
 * often. Nothing is registered, so nothing has to be taken back when the engine is closed.
 */
class AndroidMonitor(context: Context) : DeviceMonitor {
    private val app = context.applicationContext
    private val power = app.getSystemService(PowerManager::class.java)

    override fun reports(): Flow<AppReport> = flow {
        while (true) {
            emit(now())
            delay(1000)
        }
    }

    private fun now(): AppReport {
        val battery = app.registerReceiver(null as BroadcastReceiver?, IntentFilter(Intent.ACTION_BATTERY_CHANGED))
        val process = ActivityManager.RunningAppProcessInfo().also(ActivityManager::getMyMemoryState)
        return AppReport(
            thermal = if (Build.VERSION.SDK_INT >= 29) ThermalStatus.entries[power.currentThermalStatus] else ThermalStatus.UNKNOWN,
            headroom = if (Build.VERSION.SDK_INT >= 30) power.getThermalHeadroom(10).toDouble() else Double.NaN,
            powerSave = power.isPowerSaveMode,
            foreground = process.importance <= ActivityManager.RunningAppProcessInfo.IMPORTANCE_FOREGROUND_SERVICE,
            trim = trim(process.lastTrimLevel),
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
