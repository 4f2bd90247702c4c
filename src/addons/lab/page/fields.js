// The config as a form, made from its JSON Schema. A change is written into the YAML text, and comes back resolved.
import { element, state, subscribe } from "lab:report";
import { changed, invalidAt, kFileKeys, taskOf } from "./document.js";
import { explained } from "./errors.js";
import { setText } from "./session.js";

const kFirst = [
  "model.layers",
  "model.heads",
  "model.d_model",
  "model.d_ff",
  "model.positions",
  "model.attention.mask",
  "train.steps",
  "train.batch",
  "train.optimizer.lr",
  "train.seed",
];
// The task is chosen above; its files are pasted; the rest has no effect in a page.
const kLeftOut = [...kFileKeys, "train.threads"];

/** Returns the fields of a schema, [{key, ...}], in order. */
function fieldsOf(schema, prefix = "") {
  return Object.entries(schema.properties ?? {}).flatMap(([name, one]) =>
    one.type === "object" ? fieldsOf(one, `${prefix}${name}.`) : [{ ...one, key: prefix + name }],
  );
}

/** Returns a value of a JSON object by its key, "model.heads". */
const valueAt = (json, key) => key.split(".").reduce((at, part) => at?.[part], json);

// Returns the value that was typed: a number where the field is one, otherwise the text, which the checks may refuse. Without
// a text, a key that has no default is left out.
function typed({ type, default: usual }, text) {
  if (text === "" && usual === undefined) return undefined;
  if ([type].flat()[0] === "string" || text.trim() === "" || !Number.isFinite(Number(text))) return text;
  return /^\d{16,}$/.test(text.trim()) ? BigInt(text) : Number(text);
}

function bounds(field) {
  const low = field.minimum ?? field.exclusiveMinimum;
  const high = field.maximum ?? field.exclusiveMaximum;
  return low === undefined ? "" : ` (${low} to ${high})`;
}

// Returns the control of a field; refuse(message) says why a value is not taken over.
function control(field, id, refuse) {
  const change = (value) => {
    let text;
    try {
      text = changed(state.text, field.key, value);
    } catch (error) {
      return refuse(`not changed: ${explained(error)}`);
    }
    setText(text);
  };
  const common = { id, "data-key": field.key, "aria-describedby": `${id}-about` };
  if (field.enum) {
    const options = field.enum.map((value) => element("option", { value }, value));
    return element("select", { ...common, change: (event) => change(event.target.value) }, options);
  }
  if (field.type === "boolean") return element("input", { ...common, type: "checkbox", change: (event) => change(event.target.checked) });
  const inputmode = field.type === "integer" ? "numeric" : field.type === "number" ? "decimal" : "text";
  return element("input", { ...common, inputmode, autocomplete: "off", change: (event) => change(typed(field, event.target.value)) });
}

function row(field, prefix) {
  const id = `${prefix}-${field.key.replaceAll(".", "-")}`;
  const problem = element("small", { class: "problem", id: `${id}-problem` });
  const input = control(field, id, (message) => (problem.textContent = message));
  const node = element(
    "div",
    { class: "field", title: `${field.key}: ${field.description}` },
    element("label", { for: id }, field.key.split(".").at(-1).replaceAll("_", " ")),
    input,
    element("small", { id: `${id}-about`, class: "describes" }, `${field.description}${bounds(field)}`),
    problem,
  );
  subscribe(["resolved", "problems"], () => {
    const found = state.problems.filter((p) => p.key === field.key);
    problem.textContent = found.map((p) => p.message).join(" ");
    input.toggleAttribute("aria-invalid", found.length > 0);
    const value = state.resolved && valueAt(state.resolved.config, field.key);
    const isLeftOut = Boolean(state.resolved) && value === undefined;
    node.classList.toggle("off", isLeftOut && field.default !== undefined);
    if (isLeftOut && field.default === undefined) input.value = "";
    if (value === undefined || value === null) return;
    if (input.type === "checkbox") input.checked = value;
    else input.value = String(value);
  });
  return node;
}

/** Returns the form of a schema; `facts` are those of the engine's method `fields`. */
export function form(schema, facts) {
  const fields = fieldsOf(schema).filter(({ key }) => !kLeftOut.includes(key));
  const byKey = (key) => fields.find((field) => field.key === key);
  const ofTask = fields.filter(({ key }) => key.startsWith("task.") && key !== "task.name").map((field) => [field, row(field, "task")]);
  subscribe(["resolved", "text"], () => {
    const task = state.resolved?.config.task.name ?? taskOf(state.text) ?? byKey("task.name").default;
    for (const [field, node] of ofTask) node.hidden = !facts[field.key].tasks.includes(task);
  });
  const groups = new Map();
  for (const field of fields) {
    if (kFirst.includes(field.key) || ofTask.some(([one]) => one === field)) continue;
    const name = field.key.split(".").slice(0, -1).join(" ");
    groups.set(name, [...(groups.get(name) ?? []), field]);
  }
  const rest = [...groups].map(([name, some]) =>
    element(
      "fieldset",
      {},
      element("legend", {}, name),
      some.map((field) => row(field, "all")),
    ),
  );
  const note = element("p", { class: "problem", id: "form-problem", role: "status" });
  const node = element(
    "div",
    { class: "form" },
    note,
    element(
      "div",
      { class: "fields" },
      ofTask.map(([, node]) => node),
      kFirst.filter(byKey).map((key) => row(byKey(key), "first")),
    ),
    element("details", { class: "more" }, element("summary", {}, "All keys"), rest),
  );
  // A change could not be written into a text that is not valid, and would be lost.
  subscribe(["text"], () => {
    const invalid = invalidAt(state.text);
    note.textContent = invalid ? `The form is off: ${invalid}. Correct it there.` : "";
    for (const input of node.querySelectorAll("input, select")) input.disabled = Boolean(invalid);
  });
  return node;
}
