package mica

import kotlinx.coroutines.flow.Flow

/** Android's PowerManager.THERMAL_STATUS_*, by number. */
enum class ThermalStatus { NONE, LIGHT, MODERATE, SEVERE, CRITICAL, EMERGENCY, SHUTDOWN, UNKNOWN }

/** onTrimMemory's RUNNING_MODERATE, _LOW, _CRITICAL; in the background 40, 60 and 80. */
enum class TrimLevel { NONE, MODERATE, LOW, CRITICAL, UNKNOWN }

enum class BatteryStatus { NONE, DISCHARGING, CHARGING, FULL, IDLE, UNKNOWN }

/** What an app knows from its system. What is left out is "not said": what was reported earlier stays. */
data class AppReport @JvmOverloads constructor(
    val thermal: ThermalStatus = ThermalStatus.UNKNOWN,
    /** getThermalHeadroom(10); NaN: not known. */
    val headroom: Double = Double.NaN,
    val powerSave: Boolean? = null,
    val foreground: Boolean? = null,
    val trim: TrimLevel = TrimLevel.UNKNOWN,
    /** 0 to 1. */
    val batteryLevel: Double = Double.NaN,
    val battery: BatteryStatus = BatteryStatus.UNKNOWN,
    val onMains: Boolean? = null,
)

/** Where an engine learns what its app knows: Android's services, or in a test a flow of your own. Collected from [Engine]'s making to
 * its closing; whoever makes the flow sees to it that the system is asked at most once a second. */
fun interface DeviceMonitor {
    fun reports(): Flow<AppReport>
}

/** The machine now. NaN, null, UNKNOWN and -1 bytes: not known. */
data class DeviceState(
    val thermal: ThermalStatus,
    val headroom: Double,
    val hottestCelsius: Double,
    /** Something shows that the machine holds itself back. */
    val throttled: Boolean,
    val powerSave: Boolean?,
    val foreground: Boolean?,
    val trim: TrimLevel,
    val batteryLevel: Double,
    val battery: BatteryStatus,
    val onMains: Boolean?,
    val memoryAvailableBytes: Long,
    val memoryTotalBytes: Long,
    /** As a part of the highest clock that there is. */
    val clock: Double,
)

/** The monitor of this machine, with what the app reports to it. Of any number of threads. */
class Device @JvmOverloads constructor(sysroot: String = "") : AutoCloseable {
    internal val handle = Native.deviceOpen(sysroot.toByteArray(Charsets.UTF_8))

    fun report(report: AppReport) = Native.deviceReport(
        handle, report.thermal.number(), report.headroom, report.powerSave.number(), report.foreground.number(),
        report.trim.number(), report.batteryLevel, report.battery.number(), report.onMains.number(),
    )

    fun read(): DeviceState = stateOf(Native.deviceRead(handle))

    /** Twice is fine. An engine that uses the device goes on with it. */
    override fun close() = Native.deviceClose(handle)
}

// Both sides count from 0, but for UNKNOWN, which is -1 there and the last one here.
private inline fun <reified E : Enum<E>> E.number(): Int = if (name == "UNKNOWN") -1 else ordinal
private inline fun <reified E : Enum<E>> enumOf(number: Double): E = enumValues<E>().let { it.getOrElse(number.toInt()) { _ -> it.last() } }
private fun Boolean?.number(): Int = if (this == null) -1 else if (this) 1 else 0
private fun answerOf(number: Double): Boolean? = if (number < 0) null else number > 0

/** The figures in the order of device.c. */
private fun stateOf(f: DoubleArray) = DeviceState(
    enumOf(f[0]), f[1], f[2], f[3] != 0.0, answerOf(f[4]), answerOf(f[5]), enumOf(f[6]), f[7], enumOf(f[8]), answerOf(f[9]),
    f[10].toLong(), f[11].toLong(), f[12],
)
