package mica

import kotlinx.coroutines.async
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.delay
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(60)
class DeviceTest {
    private suspend fun Device.until(condition: (DeviceState) -> Boolean): DeviceState {
        while (true) {
            read().takeIf(condition)?.let { return it }
            delay(20)
        }
    }

    @Test
    fun whatNobodySaysIsUnknown() = Device(noMachine).use {
        val state = it.read()
        assertEquals(ThermalStatus.UNKNOWN, state.thermal)
        assertEquals(BatteryStatus.UNKNOWN, state.battery)
        assertEquals(TrimLevel.UNKNOWN, state.trim)
        assertNull(state.foreground)
        assertNull(state.onMains)
        assertTrue(state.hottestCelsius.isNaN() && state.headroom.isNaN())
        assertFalse(state.throttled)
    }

    @Test
    fun reportsArriveAndWhatIsLeftOutStays() = Device(noMachine).use { device ->
        device.report(AppReport(ThermalStatus.SEVERE, 1.1, true, false, TrimLevel.LOW, 0.4, BatteryStatus.DISCHARGING, false))
        device.report(AppReport(foreground = true))
        val state = runBlocking { device.until { it.foreground == true } }
        assertEquals(ThermalStatus.SEVERE, state.thermal)
        assertEquals(1.1, state.headroom)
        assertEquals(true, state.powerSave)
        assertEquals(TrimLevel.LOW, state.trim)
        assertEquals(0.4, state.batteryLevel)
        assertEquals(BatteryStatus.DISCHARGING, state.battery)
        assertEquals(false, state.onMains)
        assertTrue(state.throttled)
    }

    @Test
    fun aMonitorFeedsTheEngine() {
        val monitor = FakeMonitor()
        engine(endless, monitor).use { engine ->
            engine.deviceIntervalNs = 0
            runBlocking {
                monitor.say(AppReport(thermal = ThermalStatus.SEVERE))
                engine.device.until { it.throttled }
                val notices = ArrayList<NoticeKind>()
                engine.generate(greedy("X", 4000)).collect {
                    if (it is GenEvent.Notice && it.notice is NoticeKind.Throttled) {
                        notices += it.notice
                        if (notices.size == 1) monitor.say(AppReport(thermal = ThermalStatus.NONE))
                        delay(300) // a reading is at most 200 ms old
                    }
                }
                val expected = listOf(true to ThermalStatus.SEVERE, false to ThermalStatus.NONE)
                assertEquals(expected.map { NoticeKind.Throttled(it.first, it.second) }, notices)
            }
        }
    }

    @Test
    fun theBackgroundSuspendsOnlyIfAskedFor() {
        for (pause in listOf(true, false)) {
            val monitor = FakeMonitor()
            engine(endless.copy(pauseInBackground = pause), monitor).use { engine ->
                runBlocking {
                    monitor.say(AppReport(foreground = false))
                    engine.device.until { it.foreground == false }
                    delay(50) // the report is with the device first, then with the engine
                    val events = async { engine.generate(greedy("X", 50)).toList() }
                    if (pause) {
                        engine.state.first { it == EngineState.Suspended }
                        monitor.say(AppReport(foreground = true))
                    }
                    assertEquals(if (pause) 2 else 0, events.await().count { it is GenEvent.Notice })
                    assertEquals("x".repeat(50), engine.accumulatedText.value)
                }
            }
        }
    }

    /** The governor hears of the heat as well; what it decides changes no text. */
    @Test
    fun withAGovernor() {
        val monitor = FakeMonitor()
        engine(EngineOptions(512, 1, objective = Objective.SUSTAINED), monitor).use { engine ->
            runBlocking {
                monitor.say(AppReport(thermal = ThermalStatus.MODERATE))
                engine.device.until { it.throttled }
                assertEquals("alpha beta gamma delta", engine.generate(greedy("S")).toList().text())
            }
        }
    }
}
