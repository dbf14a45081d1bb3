// Tools and structured output through the official npm client, with a model that was trained for tools.
import assert from "node:assert/strict";
import { test } from "node:test";
import { add, client, model, user } from "./suite.mjs";

const ask = {
    model: await model(), messages: user("What is 2+3? Use the tool."), tools: [add], tool_choice: "required",
    parallel_tool_calls: false, temperature: 0, seed: 7,
};

/** Checks one call's form and returns its arguments. */
function argumentsOf(call) {
    assert.equal(call.type, "function");
    assert.equal(call.function.name, "add");
    const values = JSON.parse(call.function.arguments);
    assert.deepEqual(Object.keys(values).sort(), ["a", "b"]);
    assert.ok(Object.values(values).every(Number.isInteger));
    return values;
}

test("tool call, and its result back", async () => {
    const { message, finish_reason } = (await client.chat.completions.create(ask)).choices[0];
    assert.equal(finish_reason, "tool_calls");
    assert.equal(message.tool_calls.length, 1);
    const { a, b } = argumentsOf(message.tool_calls[0]);
    const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: String(a + b) };
    const messages = [...ask.messages, message, result];
    const answer = await client.chat.completions.create({ ...ask, messages, tool_choice: "none", max_tokens: 24 });
    assert.equal(answer.choices[0].message.tool_calls, undefined);
    assert.ok(answer.choices[0].message.content.length > 0);
});

test("streamed tool call", async () => {
    const whole = (await client.chat.completions.create(ask)).choices[0].message.tool_calls[0];
    const final = await client.chat.completions.stream(ask).finalChatCompletion();
    assert.equal(final.choices[0].finish_reason, "tool_calls");
    assert.deepEqual(argumentsOf(final.choices[0].message.tool_calls[0]), argumentsOf(whole));
});

test("the client runs the function", async () => {
    const called = [];
    const sum = ({ a, b }) => {
        called.push([a, b]);
        return String(a + b);
    };
    const runner = client.chat.completions.runTools({
        ...ask, tool_choice: { type: "function", function: { name: "add" } },
        tools: [{ type: "function", function: { ...add.function, function: sum, parse: JSON.parse } }],
    });
    await runner.done();
    assert.equal(called.length, 1);
    assert.ok(called[0].every(Number.isInteger));
});

test("responses: a call, and its result back", async () => {
    const { name, parameters } = add.function;
    const request = {
        model: ask.model, input: ask.messages, tools: [{ type: "function", name, parameters, strict: true }], tool_choice: "required",
        parallel_tool_calls: false, temperature: 0,
    };
    const reply = await client.responses.create(request);
    const call = reply.output.find((item) => item.type === "function_call");
    assert.equal(call.name, "add");
    assert.deepEqual(Object.keys(JSON.parse(call.arguments)).sort(), ["a", "b"]);
    let streamed = "";
    for await (const event of await client.responses.create({ ...request, stream: true })) {
        if (event.type === "response.function_call_arguments.delta") streamed += event.delta;
    }
    assert.equal(streamed, call.arguments);
    const result = { type: "function_call_output", call_id: call.call_id, output: "5" };
    const answer = await client.responses.create({
        ...request, input: [...ask.messages, ...reply.output, result], tool_choice: "none", max_output_tokens: 24,
    });
    assert.ok(answer.output_text.length > 0);
});

test("strict schema", async () => {
    const schema = {
        type: "object", additionalProperties: false, required: ["city", "population", "kind"],
        properties: {
            city: { type: "string", maxLength: 20 }, population: { type: "integer", minimum: 1, maximum: 99999999 },
            kind: { enum: ["capital", "town"] },
        },
    };
    const reply = await client.chat.completions.create({
        model: ask.model, messages: user("Describe Paris as JSON."), temperature: 0,
        response_format: { type: "json_schema", json_schema: { name: "place", strict: true, schema } },
    });
    const place = JSON.parse(reply.choices[0].message.content);
    assert.deepEqual(Object.keys(place).sort(), ["city", "kind", "population"]);
    assert.ok(Number.isInteger(place.population) && ["capital", "town"].includes(place.kind));
});
