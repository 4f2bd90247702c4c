// The input that all maps show, and what the model answers.
import { element, percent, state, subscribe, word } from "lab:report";
import { nextExample, setInput } from "./trace.js";

// Returns the prediction at a position, with what it was without the interventions, or what it should be.
function prediction(i) {
  const { trace, plain, expected } = state;
  const now = trace.predictions[i];
  const before = plain.predictions[i];
  const target = (trace.targets ?? expected)?.[i];
  const guessed = trace.guessed?.[i];
  const labeled = !guessed && target !== null && target !== undefined && (trace.targets ?? expected).length === trace.predictions.length;
  const wrong = labeled && target !== now;
  const sure = guessed ? `not to be known: ${trace.guessed_reason}` : probability(i);
  return element(
    "span",
    { class: `prediction ${wrong ? "wrong" : ""} ${before === now ? "" : "other"}`, title: sure },
    guessed ? element("span", {}, "(", word(now), ")") : word(now),
    labeled ? element("span", { class: "mark" }, wrong ? "✗" : "✓") : null,
    before === now ? null : element("small", { title: "without the intervention" }, element("s", {}, word(before))),
  );
}

function probability(i) {
  const { probabilities, vocabulary, outputs = vocabulary, predictions } = state.trace;
  const p = probabilities?.[i]?.[outputs?.indexOf(predictions[i])];
  return p === undefined ? "" : `probability ${percent(p)}`;
}

function chips() {
  const { tokens, predictions, source } = state.trace;
  const all = tokens.map((token, i) =>
    element("span", { class: "chip", "data-at": i }, element("small", {}, String(i)), word(token), prediction(i)),
  );
  if (state.trace.finished === false) all.push(element("span", { title: "cut at the longest output of the model" }, "…"));
  if (predictions.length === tokens.length) return source ? [sourceLine(source), element("span", { class: "arrow" }, "→"), ...all] : all;
  const plain = tokens.map((token, i) => element("span", { class: "chip" }, element("small", {}, String(i)), word(token)));
  return [...plain, element("span", { class: "arrow" }, "→"), element("span", { class: "chip" }, prediction(0))];
}

const sourceLine = (source) =>
  element(
    "span",
    { class: "source" },
    source.flatMap((token) => [word(token), " "]),
  );

// Says how much of the answer is right, and what has changed.
function summary() {
  const { trace, plain, expected } = state;
  const targets = trace.targets ?? expected;
  const changed = trace.predictions.filter((token, i) => token !== plain.predictions[i]).length;
  const change = changed ? ` ${changed} of ${trace.predictions.length} predictions changed by the intervention.` : "";
  if (targets?.length !== trace.predictions.length) return change.trim();
  const labeled = targets
    .map((target, i) => [target, trace.predictions[i]])
    .filter(([target], i) => target !== null && !trace.guessed?.[i]);
  const right = labeled.filter(([target, now]) => target === now).length;
  const guesses = trace.guessed?.includes(true) ? ` In parentheses: ${trace.guessed_reason}.` : "";
  return `${right} of ${labeled.length} right.${guesses}${change}`;
}

/** Returns the input and the answer. */
export function answer() {
  const field = element("input", { id: "input", autocomplete: "off", spellcheck: "false", "aria-describedby": "answer-sum" });
  field.addEventListener("change", () => setInput(field.value));
  const another = element("button", { id: "another", click: nextExample }, "Another");
  const strip = element("div", { class: "strip answer", id: "answer", role: "group", "aria-label": "Answer" });
  const sum = element("p", { class: "about", id: "answer-sum", role: "status" });
  subscribe(["input"], () => {
    if (document.activeElement !== field) field.value = state.input;
  });
  subscribe(["trace", "expected"], () => {
    if (!state.trace) return;
    strip.replaceChildren(...chips());
    sum.textContent = summary();
  });
  return [
    element("div", { class: "row" }, element("label", { class: "wide", for: "input" }, element("span", {}, "input"), field), another),
    strip,
    sum,
  ];
}
