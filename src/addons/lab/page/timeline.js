// The training that has been: a slider over the steps whose weights are kept, and the scores of heads over time.
import { element, grouped, percent, state, subscribe, update } from "lab:report";
import { level, savedChart } from "./curves.js";
import { scoreName, selected } from "./names.js";

const kStyles = ["first", "second", "third"];
const kClear = 0.2; // a head has a pattern from here on, on the way from chance to attainable

const headIn = (snapshot, head) => snapshot?.heads.find((h) => h.layer === head.layer && h.head === head.head);
// Returns the scores of targets of which the log has chance and attainable values: not those of the best of many offsets.
const patternsIn = (snapshot, head) =>
  state.scores.filter((s) => s.target && s.name in (head.chance ?? snapshot.chance)).map((s) => s.name);
const valueOf = (score) => (typeof score === "object" ? score?.value : score);

/** Returns how far a score is on the way from chance to the largest attainable value, or null. */
function strength(snapshot, head, score) {
  const value = valueOf(head.scores[score]);
  const chance = (head.chance ?? snapshot.chance)[score];
  const top = (head.attainable ?? snapshot.attainable)[score];
  return typeof value === "number" && top > chance ? (value - chance) / (top - chance) : null;
}

/** Returns a score of a head in the newest snapshot, {value, chance}, or null. */
export function scoreOf(head, score) {
  const last = state.snapshots.at(-1);
  const now = head && headIn(last, head);
  const value = valueOf(now?.scores[score]);
  return typeof value === "number" ? { value, chance: (now.chance ?? last.chance)[score] } : null;
}

/**
 * Returns the pattern of a head in the newest snapshot and when it formed, the first step at half of its strength:
 * {score, value, chance, formed}; null without a clear pattern.
 */
export function patternOf(head) {
  const last = state.snapshots.at(-1);
  const now = headIn(last, head);
  if (!now) return null;
  const of = (score) => strength(last, now, score) ?? -1;
  const score = patternsIn(last, now).reduce((best, name) => (of(name) > of(best) ? name : best), null);
  if (of(score) < kClear) return null;
  const first = state.snapshots.find((s) => (strength(s, headIn(s, head), score) ?? 0) >= of(score) / 2);
  return { score, ...scoreOf(head, score), formed: first?.step };
}

/** Returns the slider over the training that has been. */
export function slider() {
  const input = element("input", { type: "range", id: "past", min: 0, max: 0, step: 1, value: 0 });
  const shown = element("output", { class: "number", for: "past" });
  const live = element("button", { id: "live", click: () => update({ at: null }) }, "Now");
  input.addEventListener("input", () => {
    const step = state.history[input.value];
    update({ at: step === state.step || step === undefined ? null : step });
  });
  subscribe(["history", "at", "step"], () => {
    const { history, at, step } = state;
    input.max = Math.max(0, history.length - 1);
    input.disabled = history.length < 2;
    const index = at === null ? history.length - 1 : history.indexOf(at);
    if (document.activeElement !== input || at === null) input.value = index;
    const text = `step ${grouped(at ?? step)}`;
    shown.textContent = text;
    input.setAttribute("aria-valuetext", at === null ? `${text}, now` : text);
    live.hidden = at === null;
  });
  return element(
    "div",
    { class: "row past" },
    element("label", { class: "wide", for: "past" }, element("span", {}, "training so far"), input),
    shown,
    live,
  );
}

/** Returns the scores of the selected head over time, with the moment at which it formed. */
export function scores() {
  const chart = savedChart("Scores of this head", 150);
  const sentence = element("p", { class: "sentence", id: "pattern", role: "status" });
  const node = element("div", { class: "scores" }, sentence, chart.node);
  subscribe(["snapshots", "head", "model", "theme"], () => {
    const head = selected();
    const last = state.snapshots.at(-1);
    node.hidden = !head || !last;
    if (node.hidden) return;
    const pattern = patternOf(head);
    const find = (s) => headIn(s, head);
    const names = patternsIn(last, find(last))
      .filter((name) => typeof valueOf(find(last)?.scores[name]) === "number")
      .sort((a, b) => strength(last, find(last), b) - strength(last, find(last), a))
      .slice(0, kStyles.length);
    const series = names.map((name, i) => ({
      name: scoreName(name),
      style: kStyles[i],
      points: state.snapshots.map((s) => [s.step, valueOf(find(s).scores[name])]),
    }));
    chart.show({
      title: `Scores of ${head.name}`,
      xLabel: "step",
      range: [0, 1],
      series: [...series, ...level(0)],
      bands: pattern?.formed === undefined ? [] : [[pattern.formed, pattern.formed]],
      show: percent,
      now: "",
    });
    sentence.textContent = pattern
      ? `${scoreName(pattern.score)}: ${percent(pattern.value)} of its attention (chance ${percent(pattern.chance)}); half of the way there at step ${grouped(pattern.formed)}.`
      : "No pattern stands out yet.";
  });
  return node;
}
