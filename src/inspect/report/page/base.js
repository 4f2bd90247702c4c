"use strict";
// Shared by all views: the report, the state, elements, numbers, tokens and packed maps.

// A character that escape_controls() of the program escapes; kHiddenPoints are its table, which the build puts here.
const kHiddenClass = kHiddenPoints.map((point, i) => `${i % 2 ? "-" : ""}\\u{${point.toString(16)}}`).join("");
const kHidden = new RegExp(`(?!\n)[${kHiddenClass}](?<![^\0-\x7f${kHiddenClass}][\u200D\uFE0E\uFE0F]{1,2})`, "gu");

// Returns the text with characters escaped that would control, reorder or hide text, as \u{202e}.
const harmless = (text) => text.replace(kHidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

const report = JSON.parse(document.getElementById("report").textContent, (_, value) =>
  typeof value === "string" ? harmless(value) : value,
);

// `beside` is the head to compare with, or null; `source` is "example", "mean" or "mean-end" (over sequences, positions from the start or the end); `full` is the weight
// that gets the full color; `byValues` weights attention by values.
const state = {
  head: 0,
  beside: null,
  source: "mean",
  example: 0,
  checkpoint: 0,
  checkpointExample: 0,
  samples: 0,
  query: 0,
  full: 1,
  byValues: false,
  theme: "light",
};
const subscribers = [];

// Calls draw now, and again after each change of one of the named parts of the state.
function subscribe(names, draw) {
  subscribers.push({ names, draw });
  draw();
}

function update(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  Object.assign(state, changes);
  for (const { names, draw } of subscribers) if (names.some((name) => changed.includes(name))) draw();
}

const kSvg = "http://www.w3.org/2000/svg";
const kSvgNames = new Set(["svg", "g", "line", "path", "rect", "text", "tspan", "circle", "title"]);

// Returns an element with attributes, handlers (functions) and children: elements, texts, or null for none.
function element(name, attributes = {}, ...children) {
  const node = kSvgNames.has(name) ? document.createElementNS(kSvg, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// Returns a section of the page, with an entry in the navigation.
function section(id, title, about, ...children) {
  return element(
    "section",
    { id, "aria-labelledby": `${id}-title`, "data-title": title },
    element("h2", { id: `${id}-title` }, title),
    about ? note(about) : null,
    ...children,
  );
}

// Returns what a reader of a section or panel should know.
const note = (...text) => element("p", { class: "about" }, ...text);
const panel = (title, ...children) => element("div", { class: "panel" }, element("h3", {}, title), ...children);

// Returns the navigation to sections.
const navigation = (sections) =>
  element("nav", { "aria-label": "Sections" }, ...sections.map((s) => element("a", { href: `#${s.id}` }, s.dataset.title)));

// Returns the title of the page of a command, with the button that switches between light and dark.
function pageTitle(command, title) {
  document.title = `${title} · ${command}`;
  return element("div", { class: "title" }, element("h1", {}, element("span", {}, command), title), themeButton());
}

// Returns a labeled list of options, [[value, text]]; act(value) is called with the chosen one.
function choice(label, options, chosen, act, name = label) {
  const items = options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text));
  const list = element("select", { "data-choice": name, change: () => act(list.value) }, items);
  return element("label", {}, element("span", {}, label), list);
}

// Returns a slider from 0 to `last` for a part of the state, and the text of its place: show(place) returns it, and what follows.
function slider(label, key, last, show) {
  const shown = element("output", { "aria-live": "polite" });
  const range = { type: "range", id: key, min: 0, max: last, value: last };
  const input = element("input", { ...range, input: () => update({ [key]: Number(input.value) }) });
  state[key] = last;
  subscribe([key], () => {
    const [text, more] = show(state[key]);
    input.value = state[key];
    input.setAttribute("aria-valuetext", text);
    shown.textContent = text + more;
  });
  return [element("label", { for: key, class: "slider" }, element("span", {}, label), input), shown];
}

// Returns buttons that step(by) to the previous and the next of what `noun` names.
const stepButtons = (noun, step) => [
  element("button", { "aria-label": `previous ${noun}`, click: () => step(-1) }, "‹"),
  element("button", { "aria-label": `next ${noun}`, click: () => step(1) }, "›"),
];

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);
// A number that rounds to 0 has no sign.
const shorter = (x, digits = 3) => (!isNumber(x) ? "–" : `${Number(x.toFixed(digits)) < 0 ? "−" : ""}${Math.abs(x).toFixed(digits)}`);
const signed = (x, digits = 3) => (isNumber(x) && Number(x.toFixed(digits)) > 0 ? "+" : "") + shorter(x, digits);
const grouped = (n) => (isNumber(n) ? n.toLocaleString("en") : "–");
const percent = (x) => (isNumber(x) ? `${(100 * x).toFixed(2)} %` : "–");
const points = (x) => signed(isNumber(x) ? 100 * x : x, 2); // a change of a share, in percentage points

// Returns a rounded number with all of its digits in a tooltip.
function number(x, show = shorter) {
  return element("span", { class: "number", title: isNumber(x) ? String(x) : "not defined" }, show(x));
}

// Returns a token with its white space made visible, and a sign for an empty one.
function visible(token) {
  const text = harmless(String(token));
  return text === "" ? "∅" : text.replace(/\s/g, "␣");
}

function clipped(token, longest = 12) {
  const characters = [...visible(token)];
  return characters.length > longest ? characters.slice(0, longest - 1).join("") + "…" : characters.join("");
}

// Returns the attention layer of an index: its name, and the sequences that its queries and keys come from.
const attentionLayer = (layer) =>
  report.attentions?.[layer] ?? { name: `layer ${layer}`, queries: "tokens", keys: "tokens", causal: report.model?.mask === "causal" };
const layerName = (layer) => attentionLayer(layer).name;
const headName = (h) => `head ${h.name}`;
const counted = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;
const shortName = (h) => h.name.replace(/^[a-z]+\./, ""); // below the name of its attention

// Returns the label of a head that is beyond doubt, else "".
const labelShown = (h) => (h?.verdict === "important" ? h.label : "");

// Returns the label of a head, qualified by its verdict.
function claim(h) {
  const name = h.label || "pattern unknown";
  return (
    {
      important: h.label || "important, pattern unknown",
      harmful: `harmful, ${name}`,
      minor: `minor, ${name}`,
      backup: `backup, ${name}`,
      redundant: `looks like ${h.label}, no effect`,
      not_enough: "not enough evidence",
    }[h.verdict] ?? "–"
  );
}

// Returns a table that scrolls sideways where it is too wide.
function scrollingTable(name, className, headings, rows) {
  const head = element("thead", {}, element("tr", {}, headings));
  const table = element("table", { class: className }, head, element("tbody", {}, rows));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);
}

// Returns a cell of a table: the first of a row is its heading.
const tableCell = (column, content, className) =>
  element(column ? "td" : "th", { scope: column ? null : "row", class: className }, content);

function plainTable(headings, rows, className) {
  const titles = headings.map((text) => element("th", { scope: "col" }, text));
  const lines = rows.map((cells) => element("tr", {}, ...cells.map((cell, c) => tableCell(c, cell))));
  return scrollingTable(headings[0], className, titles, lines);
}

// Returns the button that switches between light and dark; the system setting is the default.
function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = element("button", {
    class: "theme",
    click: () => {
      chosen = true;
      set(state.theme === "dark" ? "light" : "dark");
    },
  });
  let chosen = false;
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "☀ light" : "☾ dark";
    update({ theme });
  };
  system.addEventListener("change", () => {
    if (!chosen) set(system.matches ? "dark" : "light");
  });
  set(system.matches ? "dark" : "light");
  return button;
}

const unpacked = new WeakMap();

// Returns the integers of a packed map, in order, and the step to multiply them by.
function unpack(packed) {
  if (!unpacked.has(packed)) {
    const text = atob(packed.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
    const hasSign = packed.scale !== undefined;
    const Numbers = { 1: Uint8Array, 2: hasSign ? Int16Array : Uint16Array, 4: Uint32Array }[packed.bytes];
    const step = hasSign ? packed.scale / 32767 : { 1: 1 / 255, 2: 1 / 65535, 4: 1 }[packed.bytes];
    unpacked.set(packed, { numbers: new Numbers(bytes.buffer), step });
  }
  return unpacked.get(packed);
}

// Returns the map of weight(row, column), known to `step`. `at` is null for masked keys; `axes` are the names of rows and columns.
function weightMap(weight, step, rowLabels, columnLabels, causal, axes = ["query", "key"]) {
  const at = (r, c) => (causal && c > r ? null : weight(r, c));
  const [rows, columns] = [rowLabels.length, columnLabels.length];
  return { rows, columns, at, step, rowLabels, columnLabels, causal, axes, full: state.full };
}

// Returns one (rows, columns) map of a packed array that may hold several.
function mapOf(packed, index, rowLabels, columnLabels, causal, axes) {
  const { numbers, step } = unpack(packed);
  const [rows, columns] = packed.shape.slice(-2);
  const weight = (r, c) => numbers[(index * rows + r) * columns + c] * step;
  const map = weightMap(weight, step, rowLabels, columnLabels, causal, axes);
  return { ...map, rows, columns, full: packed.scale ?? map.full };
}

const positions = (n) => Array.from({ length: n }, (_, i) => String(i));
const example = () => report.examples[state.example];
const ownInputs = report.examples?.[0]?.own ? 1 : 0; // the user's own sequence comes before those of the split
const exampleName = (i) => (i < ownInputs ? "your input" : `example ${i + 1 - ownInputs}`);
const capital = (text) => text.replace(/^./, (c) => c.toUpperCase());

const isWeighted = () => state.byValues && !isMean() && Boolean(example().value_norms);

// Returns the map with each weight times the length of what the head adds for its key, and rows that again sum to 1: Kobayashi
// et al. 2020. `packed` has the lengths (heads, keys).
function weightedByValues(map, packed, head) {
  const { numbers, step } = unpack(packed);
  const lengths = map.columnLabels.map((_, c) => numbers[head * map.columns + c] * step);
  const part = (r, c) => map.at(r, c) * lengths[c];
  const sums = map.rowLabels.map((_, r) => lengths.reduce((sum, _, c) => sum + part(r, c), 0));
  const at = (r, c) => (map.at(r, c) === null ? null : part(r, c) / (sums[r] || 1));
  // Rounded weights and lengths move a part and the sum of its row.
  const error = lengths.reduce((sum, length) => sum + map.step * length, step);
  return { ...map, what: "weighted by values", at, step: Math.min(1, (2 * error) / (Math.min(...sums) || 1)) };
}

// Returns the attention of a head in the selected example, or its mean.
function attention(headIndex) {
  const head = report.heads[headIndex];
  const { queries, keys, causal } = attentionLayer(head.layer);
  if (isMean()) return meanOf(head, "mean_weights", head.layer);
  const e = example();
  const map = mapOf(e.attention[head.layer], head.head, e[queries], e[keys], causal);
  return isWeighted() ? weightedByValues(map, e.value_norms[head.layer], head.head) : map;
}
