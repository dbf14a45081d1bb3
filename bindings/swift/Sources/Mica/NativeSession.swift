import CMica
import Foundation

/// The consumer of one reply, as the C callbacks see it.
final class Reply: @unchecked Sendable {
    private let lock = NSLock()
    private var stopped = false
    private let continuation: AsyncThrowingStream<String, Error>.Continuation

    init(_ continuation: AsyncThrowingStream<String, Error>.Continuation) {
        self.continuation = continuation
    }

    func stop() {
        lock.lock()
        stopped = true
        lock.unlock()
    }

    var isStopped: Bool {
        lock.lock()
        defer { lock.unlock() }
        return stopped
    }

    /// Non-zero stops the native loop.
    func take(_ text: UnsafePointer<CChar>, _ length: Int) -> Int32 {
        let bytes = UnsafeRawBufferPointer(start: text, count: length)
        continuation.yield(String(decoding: bytes, as: UTF8.self))
        return isStopped ? 1 : 0
    }
}

/// A model and its session. generate() and reset() are for one thread at a time, cancel() for any. Freed when nobody holds it any more:
/// a reply that runs does.
final class NativeSession: @unchecked Sendable {
    private let model: OpaquePointer
    private let session: OpaquePointer

    init(path: String, contextTokens: Int32) throws {
        var model: OpaquePointer?
        try check { mica_model_open(path, nil, &model, &$0) }
        var options = mica_session_options_default()
        options.n_ctx = contextTokens
        var session: OpaquePointer?
        do {
            try check { mica_session_new(model, &options, &session, &$0) }
        } catch {
            mica_model_close(model)
            throw error
        }
        self.model = model!
        self.session = session!
    }

    deinit {
        mica_session_free(session)
        mica_model_close(model)
    }

    func cancel() {
        mica_session_cancel(session)
    }

    func reset() throws {
        try check { mica_session_reset(session, &$0) }
    }

    func generate(prompt: String, options: GenerateOptions, reply: Reply) throws -> Metrics {
        try synchronise(with: prompt)
        guard !reply.isStopped else { throw CancellationError() }
        var native = mica_generate_options_default()
        native.max_tokens = options.maxTokens
        native.sampling.temperature = options.temperature
        native.sampling.top_p = options.topP
        native.sampling.seed = options.seed
        native.user = Unmanaged.passUnretained(reply).toOpaque()
        native.on_text = { user, text, length in
            Unmanaged<Reply>.fromOpaque(user!).takeUnretainedValue().take(text!, length)
        }
        var result = mica_result()
        try withExtendedLifetime(reply) {
            try check { mica_session_generate(session, &native, &result, &$0) }
        }
        return Metrics(ttftMs: result.ttft_ms, tpotMs: result.tpot_ms, promptTokens: result.prompt_n, generatedTokens: result.gen_n,
                       stopReason: String(cString: result.stop_reason))
    }

    /// The prompt as a message of a user, through the model's chat template.
    private func synchronise(with prompt: String) throws {
        let request = try JSONSerialization.data(withJSONObject: ["messages": [["role": "user", "content": prompt]]])
        var tokens: UnsafeMutablePointer<Int32>?
        var count = 0
        try request.withUnsafeBytes { bytes in
            let text = bytes.bindMemory(to: CChar.self).baseAddress
            try check { mica_chat_tokenize(model, text, bytes.count, nil, &tokens, &count, nil, nil, &$0) }
        }
        defer { mica_free(tokens) }
        try check { mica_session_sync(session, tokens, count, &$0) }
    }
}
