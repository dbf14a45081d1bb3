import CMica

/// A call of the engine failed: its status, and one sentence that a person can act on.
public struct MicaError: Error, CustomStringConvertible {
    public let status: Int32
    public let message: String
    /// Byte offset in the input, where that makes sense.
    public let position: Int64?

    public var description: String { message }

    init(_ status: mica_status, _ error: mica_error) {
        self.status = Int32(bitPattern: status.rawValue)
        self.position = error.position >= 0 ? error.position : nil
        self.message = withUnsafeBytes(of: error.message) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    init(_ message: String) {
        self.status = Int32(bitPattern: MICA_INVALID_ARGUMENT.rawValue)
        self.position = nil
        self.message = message
    }
}

/// Calls the engine and throws what it says.
func check(_ call: (inout mica_error) -> mica_status) throws {
    var error = mica_error()
    let status = call(&error)
    guard status == MICA_OK else { throw MicaError(status, error) }
}
