import CMica
import Foundation
#if canImport(UIKit)
import UIKit
#endif

/// Tells the engine what only the system knows: heat, the power saver, memory warnings. Keep one for the app's life.
public final class DeviceMonitor: @unchecked Sendable {
    private let device: OpaquePointer
    private var observers: [NSObjectProtocol] = []
    private let onMemoryWarning: @Sendable () -> Void

    /// `onMemoryWarning`: where the app gives memory back, for example with OnDeviceEngine.trim().
    public init(onMemoryWarning: @escaping @Sendable () -> Void = {}) throws {
        var device: OpaquePointer?
        try check { mica_device_open(nil, &device, &$0) }
        self.device = device!
        self.onMemoryWarning = onMemoryWarning
        observe()
        reportThermalState()
    }

    deinit {
        observers.forEach(NotificationCenter.default.removeObserver)
        mica_device_close(device)
    }

    /// The steps of mica_device.h for Apple's.
    static func status(of state: ProcessInfo.ThermalState) -> mica_thermal_status {
        switch state {
        case .nominal: return MICA_THERMAL_NONE
        case .fair: return MICA_THERMAL_LIGHT
        case .serious: return MICA_THERMAL_SEVERE
        case .critical: return MICA_THERMAL_CRITICAL
        @unknown default: return MICA_THERMAL_UNKNOWN
        }
    }

    /// Worse than fair: the moment for shorter replies or a smaller model.
    public var isThrottled: Bool {
        var state = mica_device_state()
        var error = mica_error()
        guard mica_device_read(device, &state, &error) == MICA_OK else { return false }
        return state.thermal.rawValue >= MICA_THERMAL_MODERATE.rawValue
    }

    private func observe() {
        let center = NotificationCenter.default
        for name in [ProcessInfo.thermalStateDidChangeNotification, Notification.Name.NSProcessInfoPowerStateDidChange] {
            observers.append(center.addObserver(forName: name, object: nil, queue: nil) { [weak self] _ in
                self?.reportThermalState()
            })
        }
        #if canImport(UIKit)
        let warning = UIApplication.didReceiveMemoryWarningNotification
        observers.append(center.addObserver(forName: warning, object: nil, queue: nil) { [weak self] _ in
            self?.reportMemoryWarning()
        })
        #endif
    }

    private func reportThermalState() {
        var report = mica_app_report_default()
        report.thermal = DeviceMonitor.status(of: ProcessInfo.processInfo.thermalState)
        report.power_save = ProcessInfo.processInfo.isLowPowerModeEnabled ? 1 : 0
        tell(&report)
    }

    private func reportMemoryWarning() {
        var report = mica_app_report_default()
        report.trim = MICA_TRIM_CRITICAL
        tell(&report)
        onMemoryWarning()
    }

    private func tell(_ report: inout mica_app_report) {
        var error = mica_error()
        _ = mica_device_report(device, &report, &error)
    }
}
