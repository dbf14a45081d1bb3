// What the suites of the npm client share. MICA_URL, MICA_KEY and MICA_NODE_MODULES come from the Python file that starts them.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.env.MICA_NODE_MODULES}/`);
export const OpenAI = require("openai");

export const key = process.env.MICA_KEY;
export const client = new OpenAI({ baseURL: `${process.env.MICA_URL}/v1`, apiKey: key, maxRetries: 0 });

export const user = (text) => [{ role: "user", content: text }];

export const add = {
    type: "function",
    function: {
        name: "add",
        description: "Adds two integers.",
        parameters: {
            type: "object",
            properties: { a: { type: "integer" }, b: { type: "integer" } },
            required: ["a", "b"],
            additionalProperties: false,
        },
    },
};

/** The model's name, as the server tells it. */
export async function model() {
    return (await client.models.list()).data[0].id;
}

/** A value of /metrics. */
export async function metric(name) {
    const answer = await fetch(`${process.env.MICA_URL}/metrics`, { headers: { Authorization: `Bearer ${key}` } });
    const line = (await answer.text()).split("\n").find((l) => l.startsWith(`${name} `));
    return Number(line.split(" ")[1]);
}

/** Waits until a value of /metrics is what it should be; says whether that came. */
export async function becomes(name, value, seconds = 20) {
    for (let end = Date.now() + 1000 * seconds; Date.now() < end; await sleep(20)) {
        if ((await metric(name)) === value) return true;
    }
    return false;
}

export async function all(stream) {
    const parts = [];
    for await (const part of stream) parts.push(part);
    return parts;
}
