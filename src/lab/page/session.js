// The session: the config that is open, the run that trains, and what the page shows of it.
import { report, state, update } from "lab:report";
import configs from "lab:configs";
import { call } from "./engine.js";
import { headList } from "./names.js";

const kPoints = 4000; // of the training curve; a longer one is thinned
const kMilliseconds = 90; // of a call of `step`: short enough for maps that move

Object.assign(state, {
  phase: "starting", // or ready, training, finished, broken
  text: "", // the config, YAML
  own: {}, // files that were pasted or opened, by name
  checking: false, // the config is being checked or opened
  problems: [], // of the config
  resolved: null, // the answer of `resolve`
  stale: false, // the config differs from the one that is open
  model: null, // the answer of `open`, with its heads
  step: 0,
  curves: { train: [], validation: [] }, // [[step, loss, accuracy]]
  rate: null, // steps and sequences per second
  snapshots: [], // scores of heads, {step, heads, ...}
  history: [], // steps whose weights are kept
  at: null, // the step that is shown; null: the present
  stopped: "", // why training ended
  message: "",
});

const uncommented = (text) => text.replace(/#.*$/gm, "");

// Returns the user's own files, and those of configs/ that a text names, with those that they name.
function files(text = state.text, own = state.own) {
  const found = { ...own };
  const add = (from) => {
    for (const [name, content] of Object.entries(configs))
      if (!(name in found) && from.includes(name)) {
        found[name] = content;
        add(uncommented(content));
      }
  };
  add(uncommented(text));
  return found;
}

/** Shows a message, for screen readers too. */
export const say = (message) => update({ message });

/** Shows an error of the engine. */
export const sayError = (error) => say(error.problems?.length ? error.problems.map((p) => p.message).join("\n") : error.message);

let checks = 0;

/** Takes over the text of a config and checks it. Opens it at once unless a run has been trained. */
export async function setText(text, { keepRun = true } = {}) {
  const check = ++checks;
  update({ text, checking: true });
  try {
    const resolved = await call("resolve", { yaml: text, files: files() });
    if (check !== checks) return;
    update({ resolved, problems: [] });
    if (state.model?.text === text && keepRun) update({ stale: false });
    else if (state.step > 0 && keepRun) update({ stale: true });
    else await open();
  } catch (error) {
    if (check !== checks) return;
    const problems = error.problems?.length ? error.problems : [{ key: "", message: error.message }];
    update({ problems, resolved: null });
  }
  if (check === checks) update({ checking: false });
}

const kStart = { step: 0, rate: null, snapshots: [], at: null, stopped: "", stale: false, checking: false };

function show(model, text, rest = {}) {
  const attentions = model.attentions ?? [];
  report.task = model.config.task.name; // names the files of saved pictures
  update({
    ...kStart,
    curves: { train: [], validation: [] },
    history: [0],
    head: 0,
    phase: "ready",
    ...rest,
    model: { ...model, text, heads: headList(attentions) },
    message: "",
  });
}

/** Opens the config: a model with the initial weights of its seed. */
async function open() {
  pause();
  const text = state.text;
  try {
    const model = await call("open", { yaml: text, files: files() });
    if (text === state.text) show(model, text);
  } catch (error) {
    update({ phase: state.model ? state.phase : "broken", problems: error.problems ?? [] });
    sayError(error);
  }
}

const kData = /^[\w.-]{1,64}\.(tsv|jsonl|txt)$/;

/**
 * Opens a run, whose directory is `run` in the names of the files, or weights with the text of their config unless they
 * hold it. Throws EngineError.
 */
export async function load(contents, { run = null, config = "" }) {
  pause();
  const text = (name) => new TextDecoder().decode(contents[name] ?? new Uint8Array());
  const own = Object.keys(contents).filter((name) => kData.test(name) && run !== "");
  const model = await call("load", { files: files(config, contents), ...(config ? { config } : {}) });
  checks += 1;
  update({ own: Object.fromEntries(own.map((name) => [name, text(name)])) });
  show(model, model.yaml, {
    text: model.yaml,
    step: model.step,
    phase: model.trained || model.stopped ? "finished" : "ready",
    stopped: model.stopped ?? "",
    problems: [],
    ...past(run === null ? "" : text(`${run}metrics.jsonl`)),
  });
  const resolved = await call("resolve", { yaml: model.yaml, files: files() }).catch(() => null);
  update({ resolved });
  await refreshHistory();
}

// Returns the curves and the scores of heads of a run's metrics.jsonl, whose last line may be incomplete.
function past(text) {
  const lines = text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line));
  const of = (split) => lines.filter((m) => m.split === split);
  const curve = (split) => of(split).map((m) => [m.step, m.loss, m.accuracy]);
  return { curves: { train: curve("train"), validation: curve("validation") }, snapshots: of("heads") };
}

async function refreshHistory() {
  const { model } = state;
  const { steps } = await call("history");
  if (model === state.model) update({ history: steps });
}

// Adds what a call of `step` reports.
function take({ step, reports, validations, heads, stopped = "", seconds, sequences }) {
  const { train } = state.curves;
  const curves = {
    train: [...(train.length > kPoints ? train.filter((_, i) => i % 2) : train), ...reports.map((r) => [r.step, r.loss, r.accuracy])],
    validation: [...state.curves.validation, ...validations.map((v) => [v.step, v.loss, v.accuracy])],
  };
  const rate = seconds > 0 && reports.length ? smooth({ steps: reports.length / seconds, sequences: sequences / seconds }) : state.rate;
  update({ curves, snapshots: [...state.snapshots, ...heads], rate, step, stopped });
}

// Returns the mean of the present rate and the ones before, the newest counting most.
function smooth(rate) {
  if (!state.rate) return rate;
  const mean = (key) => 0.8 * state.rate[key] + 0.2 * rate[key];
  return { steps: mean("steps"), sequences: mean("sequences") };
}

async function advance(request) {
  const answer = await call("step", request);
  take(answer);
  if (answer.stopped) update({ phase: "finished" });
}

// Waits for a frame that shows what has changed; a hidden page has none and trains on.
const frame = () => new Promise((done) => (document.hidden ? setTimeout(done) : requestAnimationFrame(() => setTimeout(done))));

// Trains until the phase changes. The engine makes the next steps while the page draws the last ones.
async function loop() {
  const go = () => (state.phase === "training" ? call("step", { milliseconds: kMilliseconds }) : null);
  let listed = 0;
  try {
    for (let next = go(); next;) {
      const answer = await next;
      next = answer.stopped ? null : go();
      take(answer);
      if (answer.stopped) update({ phase: "finished" });
      if (performance.now() - listed > 1000) {
        listed = performance.now();
        refreshHistory();
      }
      await frame();
    }
    await refreshHistory();
  } catch (error) {
    update({ phase: "ready" });
    sayError(error);
  }
}

let running = Promise.resolve();

/** Trains until the run is over or paused. */
export function train() {
  if (state.phase !== "ready") return;
  update({ phase: "training", at: null, message: "" });
  running = running.then(loop);
}

/** Pauses training after the steps that are under way. */
export function pause() {
  if (state.phase === "training") update({ phase: "ready" });
}

/** Makes one step. */
export async function stepOnce() {
  pause();
  await running;
  try {
    await advance({ steps: 1 });
    await refreshHistory();
  } catch (error) {
    sayError(error);
  }
}

/** Starts the run over, with the config as it is now. */
export async function reset() {
  pause();
  await running;
  await open();
}

/** Changes a key of the config that may change while the run goes on, and returns the config of the run. */
export async function set(key, value) {
  const { model } = state;
  try {
    const { config } = await call("set", { key, value });
    model.config = config;
  } catch (error) {
    sayError(error);
  }
  return state.model.config;
}
