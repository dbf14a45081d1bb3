// The official npm client against the scripted model: what it answers is known to the letter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenAI, all, becomes, client, metric, model, user } from "./suite.mjs";

const name = await model();
const greedy = { model: name, temperature: 0 };
const LONG = { ...greedy, prompt: Array(64).fill("X"), max_tokens: 480 }; // takes seconds, if nobody ends it

test("chat", async () => {
    const reply = await client.chat.completions.create({ ...greedy, messages: user("E"), n: 2 });
    assert.deepEqual(reply.choices.map((c) => c.message.content), ["Hi 🙂!", "Hi 🙂!"]);
    assert.deepEqual(reply.choices.map((c) => c.index), [0, 1]);
    assert.equal(reply.choices[0].finish_reason, "stop");
    assert.equal(reply.usage.completion_tokens, 16);
    assert.equal(reply.model, "scripted");
});

test("limits and stop strings", async () => {
    const cut = await client.chat.completions.create({ ...greedy, messages: user("X"), max_completion_tokens: 7 });
    assert.equal(cut.choices[0].message.content, "xxxxxxx");
    assert.equal(cut.choices[0].finish_reason, "length");
    const stopped = await client.chat.completions.create({ ...greedy, messages: user("S"), stop: ["gamma"] });
    assert.equal(stopped.choices[0].message.content, "alpha beta ");
    assert.equal(stopped.choices[0].finish_reason, "stop");
});

test("stream", async () => {
    const request = { ...greedy, messages: user("S"), stream: true, stream_options: { include_usage: true } };
    const parts = await all(await client.chat.completions.create(request));
    assert.equal(parts.map((p) => p.choices[0]?.delta.content ?? "").join(""), "alpha beta gamma delta");
    assert.equal(parts.at(-1).usage.completion_tokens, 6);
    assert.equal(new Set(parts.map((p) => p.id)).size, 1);
});

test("stream helper", async () => {
    const runner = client.chat.completions.stream({ ...greedy, messages: user("E") });
    let text = "";
    runner.on("content", (delta) => (text += delta));
    const final = await runner.finalChatCompletion();
    assert.equal(text, "Hi 🙂!");
    assert.equal(final.choices[0].message.content, "Hi 🙂!");
});

test("log-probabilities", async () => {
    const reply = await client.chat.completions.create({ ...greedy, messages: user("D"), logprobs: true, top_logprobs: 3 });
    const first = reply.choices[0].logprobs.content[0];
    assert.deepEqual(first.top_logprobs.map((t) => t.token), ["p1", "p2", "p3"]);
    assert.ok(Math.abs(first.logprob - Math.log(0.6)) < 1e-5);
});

test("completions", async () => {
    const reply = await client.completions.create({ ...greedy, prompt: ["E", "R"], max_tokens: 20 });
    assert.deepEqual(reply.choices.map((c) => c.text), ["Hi 🙂!", "red fox"]);
    const parts = await all(await client.completions.create({ ...greedy, prompt: "R", max_tokens: 20, stream: true }));
    assert.equal(parts.map((p) => p.choices[0]?.text ?? "").join(""), "red fox");
});

test("scored prompts", async () => {
    const { choices } = await client.completions.create({ ...greedy, prompt: ["Dp2", "Dp1"], echo: true, logprobs: 1, max_tokens: 0 });
    assert.deepEqual(choices.map((c) => c.text), ["Dp2", "Dp1"]);
    assert.deepEqual(choices[0].logprobs.tokens, ["D", "p2"]);
    choices.forEach(({ logprobs }, i) => {
        assert.equal(logprobs.token_logprobs[0], null);
        assert.ok(Math.abs(logprobs.token_logprobs[1] - Math.log([0.3, 0.6][i])) < 1e-5);
    });
});

test("responses", async () => {
    const reply = await client.responses.create({ ...greedy, input: "E" });
    assert.equal(reply.output_text, "Hi 🙂!");
    assert.equal(reply.status, "completed");
    const events = await all(await client.responses.create({ ...greedy, input: "E", stream: true }));
    assert.equal(events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join(""), "Hi 🙂!");
    assert.equal(events.at(-1).type, "response.completed");
});

test("structured output", async () => {
    const schema = { type: "object", properties: { a: { const: 1 } }, required: ["a"], additionalProperties: false };
    const format = { type: "json_schema", json_schema: { name: "x", strict: true, schema } };
    const reply = await client.chat.completions.create({ ...greedy, messages: user("J"), response_format: format });
    assert.deepEqual(JSON.parse(reply.choices[0].message.content), { a: 1 });
    const forced = await client.chat.completions.create({ ...greedy, messages: user("E"), response_format: format, max_tokens: 60 });
    assert.deepEqual(JSON.parse(forced.choices[0].message.content), { a: 1 });
    const impossible = { ...format, json_schema: { ...format.json_schema, schema: { type: "no such type" } } };
    const refused = client.chat.completions.create({ ...greedy, messages: user("J"), response_format: impossible });
    await assert.rejects(refused, OpenAI.BadRequestError);
});

test("embeddings", async () => {
    const packed = await client.embeddings.create({ model: name, input: ["E", "S R"] }); // asks for base64 by itself
    const plain = await client.embeddings.create({ model: name, input: ["E", "S R"], encoding_format: "float" });
    assert.deepEqual(packed.data.map((d) => d.index), [0, 1]);
    assert.ok(packed.usage.prompt_tokens > 0);
    packed.data.forEach(({ embedding }, i) => {
        assert.equal(embedding.length, plain.data[i].embedding.length);
        assert.ok(Math.abs(embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-4);
        assert.ok(embedding.every((x, k) => Math.abs(x - plain.data[i].embedding[k]) < 1e-6));
    });
});

test("errors", async () => {
    const rejected = (promise, type, more) => assert.rejects(promise, (e) => {
        assert.ok(e instanceof type, e);
        for (const [field, value] of Object.entries(more)) assert.equal(e[field], value);
        return true;
    });
    const stranger = client.withOptions({ apiKey: "wrong" });
    await rejected(stranger.models.list(), OpenAI.AuthenticationError, { status: 401, code: "invalid_api_key" });
    await rejected(client.chat.completions.create({ model: name, messages: [] }), OpenAI.BadRequestError,
        { status: 400, param: "messages" });
    await rejected(client.chat.completions.create({ ...greedy, messages: user("E"), temperature: "hot" }), OpenAI.BadRequestError,
        { status: 400, param: "temperature" });
    await rejected(client.completions.create({ model: name, prompt: "a".repeat(600) }), OpenAI.BadRequestError,
        { status: 400, code: "context_length_exceeded" });
    await rejected(client.files.list(), OpenAI.NotFoundError, { status: 404 });
});

test("a stream that is left frees its slots", async () => {
    const before = await metric("mica_clients_left_total");
    const stream = await client.completions.create({ ...LONG, stream: true });
    for await (const part of stream) {
        assert.equal(part.choices[0].text, "x");
        break; // the client aborts the request then
    }
    assert.ok(await becomes("mica_running", 0));
    assert.equal(await metric("mica_clients_left_total"), before + 1);
});

test("an aborted request frees its slots", async () => {
    const before = await metric("mica_clients_left_total");
    const abort = new AbortController();
    const waiting = client.completions.create(LONG, { signal: abort.signal });
    const failed = assert.rejects(waiting, OpenAI.APIUserAbortError);
    assert.ok(await becomes("mica_running", 1));
    abort.abort();
    await failed;
    assert.ok(await becomes("mica_running", 0));
    assert.equal(await metric("mica_clients_left_total"), before + 1);
    const next = await client.chat.completions.create({ ...greedy, messages: user("E") });
    assert.equal(next.choices[0].message.content, "Hi 🙂!");
});
