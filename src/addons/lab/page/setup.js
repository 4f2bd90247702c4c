// The area of data and config: where to start, examples, the form and the YAML text.
import { element, harmless, state, subscribe, word } from "lab:report";
import configs from "lab:configs";
import { summaryOf } from "./document.js";
import { editor } from "./editor.js";
import { call } from "./engine.js";
import { form } from "./fields.js";
import { counted } from "./names.js";
import { ownData } from "./own.js";
import { setText } from "./session.js";

const kStarts = Object.keys(configs)
  .filter((name) => name.endsWith(".yaml"))
  .sort((a, b) => (b === "reverse.yaml") - (a === "reverse.yaml") || a.localeCompare(b));
const kSummaries = new Set(kStarts.map((name) => summaryOf(configs[name], true))); // the page's own words
const kExamples = 3;

const title = (name) => name.replace(/\.yaml$/, "").replaceAll("_", " ");

function starts() {
  const other = element("option", { value: "", hidden: true }, "changed config");
  const list = element(
    "select",
    { id: "start", change: () => configs[list.value] && setText(configs[list.value], { keepRun: false }) },
    other,
    kStarts.map((name) => element("option", { value: name }, title(name))),
  );
  const about = element("p", { class: "about" });
  subscribe(["text"], () => {
    list.value = kStarts.find((name) => configs[name] === state.text) ?? "";
    about.textContent = harmless(summaryOf(state.text, kSummaries.has(summaryOf(state.text, true))));
  });
  return [element("label", { class: "start", for: "start" }, element("span", {}, "start with"), list), about];
}

const tokens = (names) => names.map((name) => (name === null ? element("span", { class: "none" }, "·") : word(name)));
const spaced = (nodes) => nodes.flatMap((node) => [node, " "]);

function examples() {
  const list = element("dl", { class: "examples", "aria-label": "Examples" });
  subscribe(["model"], async () => {
    const { model } = state;
    if (!model) return;
    const found = await call("examples", { split: "train", first: 0, count: kExamples }).catch(() => []);
    if (model !== state.model) return;
    list.replaceChildren(
      ...found.map((one) =>
        element(
          "div",
          {},
          element("dt", {}, spaced(tokens(one.source ?? one.tokens))),
          element("dd", {}, "→ ", spaced(tokens(one.targets))),
        ),
      ),
    );
  });
  return list;
}

const kUnits = ["", " k", " M", " G"];

function brief(x) {
  const power = Math.min(kUnits.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, x)) / 3)));
  return `${Number((x / 1000 ** power).toPrecision(3))}${kUnits[power]}`;
}

function cost() {
  const line = element("p", { class: "cost" });
  subscribe(["resolved"], () => {
    const { parameters, memory_bytes: memory, flops_per_step: flops } = state.resolved?.cost ?? {};
    line.textContent = parameters
      ? `${counted(parameters, "parameter")} · ${brief(memory.total)}B of memory · ${brief(flops)}FLOP a step`
      : "";
  });
  return line;
}

// Returns two views of the config, one of which is shown.
function views(schema, facts) {
  const yaml = editor();
  const panels = { Form: form(schema, facts), YAML: yaml.node };
  const names = Object.keys(panels);
  const tabs = names.map((name) =>
    element("button", { role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, click: () => choose(name) }, name),
  );
  const nodes = names.map((name) =>
    element("div", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}` }, panels[name]),
  );
  const choose = (name) =>
    names.forEach((one, i) => {
      tabs[i].setAttribute("aria-selected", String(one === name));
      tabs[i].tabIndex = one === name ? 0 : -1;
      nodes[i].hidden = one !== name;
    });
  choose("Form");
  const list = element("div", { role: "tablist", "aria-label": "Config" }, tabs);
  list.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const next = (tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length;
    choose(names[next]);
    tabs[next].focus();
  });
  return [list, yaml.problems, ...nodes];
}

/** Returns the area of data and config; see form(). */
export function setup(schema, facts) {
  return element(
    "section",
    { id: "setup", class: "panel", "aria-labelledby": "setup-title" },
    element("h2", { id: "setup-title" }, "Data and config"),
    starts(),
    examples(),
    ownData(),
    views(schema, facts),
    cost(),
  );
}
