// What the panel's forms say about the next request.
const sampling = document.getElementById("sampling");
const schema = document.getElementById("schema");
const schemaError = document.getElementById("schema-error");

// {schema} or {} or, with a message on the page, null.
function readSchema() {
  const text = schema.value.trim();
  let value, problem = "";
  try {
    value = text ? JSON.parse(text) : undefined;
    if (text && (typeof value !== "object" || value === null || Array.isArray(value))) problem = "A schema is an object: {…}";
  } catch (error) {
    problem = `This is not JSON: ${error.message}`;
  }
  schemaError.textContent = problem;
  schema.classList.toggle("wrong", problem !== "");
  return problem ? null : { schema: value };
}

// The fields of a request but its messages, and the system prompt; null, with the focus on what is wrong, if something is.
export function read() {
  const request = {};
  const wrong = [...sampling.elements].find((field) => !field.checkValidity());
  const format = readSchema();
  if (wrong || !format) {
    show(wrong ?? schema);
    return null;
  }
  for (const name of ["temperature", "top_p", "top_k", "seed", "max_tokens"])
    if (sampling.elements[name].value !== "") request[name] = sampling.elements[name].valueAsNumber;
  if (format.schema)
    request.response_format = { type: "json_schema", json_schema: { name: "reply", strict: true, schema: format.schema } };
  return { request, system: sampling.elements.system.value.trim(), json: Boolean(format.schema) };
}

const panel = document.getElementById("panel");
const toggle = document.getElementById("toggle");

export function showPanel(visible) {
  panel.hidden = !visible;
  toggle.setAttribute("aria-expanded", String(visible));
}

function show(field) {
  showPanel(true);
  field.closest("details").open = true;
  field.focus();
  if (field.reportValidity) field.reportValidity();
}

const wide = matchMedia("(min-width: 801px)");

export function start() {
  toggle.addEventListener("click", () => showPanel(panel.hidden));
  wide.addEventListener("change", () => showPanel(wide.matches));
  showPanel(wide.matches);
  schema.addEventListener("input", readSchema);
  sampling.addEventListener("submit", (event) => event.preventDefault());
}

// On a phone the panel covers the chat.
export function panelCovers() { return !panel.hidden && !wide.matches; }
