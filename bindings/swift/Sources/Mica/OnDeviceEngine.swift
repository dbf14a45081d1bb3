import CMica
import Foundation

/// What a reply is made with.
public struct GenerateOptions: Sendable {
    public var maxTokens: Int32 = 512
    public var temperature: Float = 0.7
    public var topP: Float = 0.95
    public var seed: Int64 = -1

    public init() {}
}

/// Times of a reply, in milliseconds, and what it was made of.
public struct Metrics: Sendable {
    public let ttftMs: Double
    public let tpotMs: Double
    public let promptTokens: Int32
    public let generatedTokens: Int32
    public let stopReason: String
}

/// One model and one conversation. The actor guards the two; the native call runs on a queue of its own, because it blocks, and the
/// threads of Swift's pool must not.
public actor OnDeviceEngine {
    private var native: NativeSession?
    private var generating = false
    private let queue = DispatchQueue(label: "mica.generate", qos: .userInitiated)

    public init() {}

    /// Maps the weights and reserves the memory of the conversation. `contextTokens`: 0 for the engine's default.
    public func load(path: String, contextTokens: Int32 = 0) async throws {
        guard !generating else { throw MicaError("a reply is being made: stop it before another model is loaded") }
        native = nil
        let queue = self.queue
        native = try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(with: Result { try NativeSession(path: path, contextTokens: contextTokens) })
            }
        }
    }

    /// The reply's text, whole characters only. Ending the iteration, or cancelling its task, stops the native work before its next token
    /// or prefill chunk.
    public func stream(
        prompt: String,
        options: GenerateOptions = GenerateOptions(),
        onMetric: @escaping @Sendable (Metrics) -> Void = { _ in }
    ) throws -> AsyncThrowingStream<String, Error> {
        guard let native else { throw MicaError("no model is loaded: call load() first") }
        guard !generating else { throw MicaError("a reply is being made: one at a time") }
        generating = true
        let queue = self.queue
        return AsyncThrowingStream { continuation in
            let reply = Reply(continuation)
            continuation.onTermination = { _ in
                reply.stop()
                native.cancel()
            }
            queue.async {
                let outcome = Result { try native.generate(prompt: prompt, options: options, reply: reply) }
                Task {
                    await self.replyEnded()
                    switch outcome {
                    case .success(let metrics):
                        onMetric(metrics)
                        continuation.finish()
                    case .failure(let error):
                        continuation.finish(throwing: error)
                    }
                }
            }
        }
    }

    /// Stops the reply that is being made, if there is one.
    public func stop() {
        native?.cancel()
    }

    /// Gives the conversation's cache back, as a memory warning asks; the next reply computes its prompt again.
    public func trim() async throws {
        guard let native, !generating else { return }
        try native.reset()
    }

    /// Frees the weights and the conversation.
    public func unload() {
        native?.cancel()
        native = nil
    }

    private func replyEnded() {
        generating = false
    }
}
