// The server's routes. The API key lives in this module's memory and nowhere else.

let key = "";

export function setKey(value) { key = value; }

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers(more) { return key ? { ...more, Authorization: `Bearer ${key}` } : more; }

async function refused(response) {
  const text = await response.text();
  let message = `${response.status} ${response.statusText}`;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // not from mica: a proxy in between
  }
  const wait = response.headers.get("Retry-After");
  return new ApiError(response.status, wait ? `${message} (in ${wait} s)` : message);
}

export async function status() {
  const response = await fetch("v1/mica/status", { headers: headers({}), cache: "no-store", signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw await refused(response);
  return response.json();
}

// The JSON of each event of a stream, until its [DONE].
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError(0, "the connection ended before the reply did");
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data === "[DONE]") return;
      if (data) yield JSON.parse(data);
    }
  }
}

// The chunks of a streamed chat completion. `signal` stops it: the server sees the connection close and frees the slot.
export async function* chat(request, signal) {
  const response = await fetch("v1/chat/completions", {
    method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify({ ...request, stream: true }), signal,
  });
  if (!response.ok) throw await refused(response);
  for await (const event of events(response.body)) {
    if (event.error) throw new ApiError(event.error.status ?? 500, event.error.message);
    yield event;
  }
}
