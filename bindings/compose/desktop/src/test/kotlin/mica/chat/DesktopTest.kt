package mica.chat

import androidx.compose.ui.graphics.ImageBitmap
import androidx.compose.ui.graphics.toAwtImage
import java.io.File
import javax.imageio.ImageIO
import mica.DeviceState
import mica.Engine
import mica.EngineState
import mica.AppReport
import mica.ThermalStatus
import mica.noMachine
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test

/** Without a display: drawn in memory. */
class DesktopTest : ChatScreenTests() {
    override fun keep(picture: ImageBitmap, name: String) {
        val folder = File(System.getProperty("mica.pictures")).apply { mkdirs() }
        ImageIO.write(picture.toAwtImage(), "png", File(folder, "$name.png"))
    }
}

class TextsTest {
    private fun device(report: AppReport): DeviceState = Engine(null, noMachine).use {
        it.device.report(report)
        it.device.read()
    }

    @Test
    fun whatTheBannerSays() {
        assertNull(heatText(device(AppReport())))
        for (status in listOf(ThermalStatus.NONE, ThermalStatus.LIGHT)) assertNull(heatText(device(AppReport(status))))
        assertTrue("warm" in heatText(device(AppReport(ThermalStatus.MODERATE)))!!)
        for (status in ThermalStatus.entries.filter { it >= ThermalStatus.SEVERE && it != ThermalStatus.UNKNOWN })
            assertTrue(status.name.lowercase() in heatText(device(AppReport(status)))!!)
    }

    @Test
    fun whatTheStatusSays() {
        assertEquals("", statusText(ChatState(), EngineState.Ready))
        assertEquals("loading the model: 34 %", statusText(ChatState(), EngineState.Loading(0.345)))
        assertEquals("first token 31 ms", statusText(ChatState(speed = Speed(31.4, Double.NaN)), EngineState.Generating))
        assertEquals("first token 31 ms · 120.4 tokens/s", statusText(ChatState(speed = Speed(31.4, 120.42)), EngineState.Ready))
        assertEquals("no", statusText(ChatState(error = "no", speed = Speed(1.0, 1.0)), EngineState.Ready))
    }

    /** 100 tokens a second: told at the first one, then four times a second, with the rate after the first. */
    @Test
    fun whatTheMeterSays() {
        var time = 1_000_000_000L
        val meter = SpeedMeter { time }
        val told = ArrayList<Speed>()
        time += 40_000_000
        for (token in 1..101) {
            meter.token(token)?.let { told += it }
            time += 10_000_000
        }
        assertEquals(5, told.size)
        assertTrue(told[0].tokensPerSecond.isNaN())
        for (speed in told) assertEquals(40.0, speed.ttftMs, 1e-6)
        for (speed in told.drop(1)) assertEquals(100.0, speed.tokensPerSecond, 1e-6)
    }
}
