// The session: the config that is open, the run that trains, and what the page shows of it.
import { grouped, report, state, update } from "lab:report";
import configs from "lab:configs";
import { filesOf } from "./document.js";
import { ask, call, end, prepare } from "./engine.js";
import { explained } from "./errors.js";
import { headList } from "./names.js";
import { isData } from "./pairs.js";
import { kNoCurve, past, take } from "./progress.js";

const kMilliseconds = 90; // of a call of `step`: short enough for maps that move

Object.assign(state, {
  phase: "starting", // or ready, training, finished, broken
  text: "", // the config, YAML
  own: {}, // files that were pasted or opened, by name; the config need not name all of them
  busy: false, // a call takes long
  checking: false, // the config is being checked or opened
  problems: [], // of the config
  resolved: null, // the answer of `resolve`
  stale: false, // the config differs from the one that is open
  model: null, // the answer of `open`, with its heads
  step: 0,
  curves: { train: kNoCurve, validation: kNoCurve },
  rate: null, // steps and sequences per second
  snapshots: [], // scores of heads, {step, heads, ...}
  history: [], // steps whose weights are kept
  at: null, // the step that is shown; null: the present
  stopped: "", // why training ended
  message: "",
});

// Returns the files that the config names, the user's own before those of configs/.
const files = () => filesOf(state.text, { ...configs, ...state.own });

/** Returns those of the files that are not in configs/. */
export const ownFiles = () => Object.fromEntries(Object.entries(files()).filter(([name, content]) => configs[name] !== content));

/** Takes over files of the user, {name: text}. */
export const setOwn = (own) => update({ own });

/** Shows a message, for screen readers too. */
export const say = (message) => update({ message });

// Returns the problems of a config that an error names, or the error as one.
const problemsOf = (error) => (error.problems?.length ? error.problems : [{ key: "", message: explained(error) }]);

/** Shows an error, unless the user or a later call has stopped what failed. */
export function sayError(error, before = "") {
  if (error.kind === "stopped") return;
  say(
    before +
      problemsOf(error)
        .map((problem) => problem.message)
        .join("\n"),
  );
  if (error.kind === "failed") restore(state.message);
}

let checks = 0;

/** Takes over the text of a config and checks it. Opens it at once unless a run has been trained. */
export async function setText(given, { keepRun = true } = {}) {
  const text = given.replace(/^\ufeff/, "");
  const check = ++checks;
  update({ text, checking: true });
  try {
    const resolved = await ask("resolve", { yaml: text, files: files() });
    if (check !== checks) return;
    update({ resolved, problems: [] });
    if (state.model?.text === text && keepRun) update({ stale: false });
    else if (state.step > 0 && keepRun) update({ stale: true });
    else await open();
  } catch (error) {
    if (check !== checks || error.kind === "stopped") return;
    update({ problems: problemsOf(error), resolved: null });
  }
  if (check === checks) update({ checking: false });
}

const kStart = { step: 0, rate: null, snapshots: [], at: null, stopped: "", stale: false, checking: false };

// How to open the session again as it was lately: the call, and the state of the page. Steps since then are lost.
let kept = null;
let keptAt = 0; // when, in milliseconds
let keepEvery = 0; // milliseconds
let isRestoring = false;

function keepState(method, given) {
  const { phase, curves, snapshots, step, stopped, head, model } = state;
  kept = {
    method,
    given,
    text: model.text,
    shown: { phase: phase === "training" ? "ready" : phase, curves, snapshots, step, stopped, head },
  };
}

// Keeps the session as it is now, in a twentieth of the time.
async function keep() {
  const { model } = state;
  if (!model || model.trained) return;
  const start = performance.now();
  const saved = await call("save").catch(() => null);
  if (saved && model === state.model) keepState("load", { files: saved.files });
  keptAt = performance.now();
  keepEvery = Math.max(5000, 20 * (keptAt - start));
}

// Opens the session that was kept, in new workers.
async function restore(message) {
  if (!kept || isRestoring) return;
  isRestoring = true;
  update({ phase: "starting" });
  try {
    const { answer, accept } = await prepare(kept.method, kept.given);
    accept();
    show(answer, kept.text, { ...kept.shown, stale: state.stale, message });
    await refreshHistory();
  } catch (error) {
    kept = null;
    update({ model: null, phase: "broken" });
    say(`${message} The run could not be opened again: ${explained(error)}. Choose a config to start with.`);
  } finally {
    isRestoring = false;
  }
}

/** Ends what takes too long. The run that is open stays, as it was lately. */
export async function stop() {
  pause();
  const isLost = end();
  update({ checking: false });
  if (!isLost) return say(state.model ? "Stopped. The run that was open before still is." : "Stopped.");
  await restore(`Stopped. The run is as it was at step ${grouped(kept?.shown.step)}.`);
}

function show(model, text, rest = {}) {
  const attentions = model.attentions ?? [];
  report.task = model.config.task.name; // names the files of saved pictures
  update({
    ...kStart,
    curves: { train: kNoCurve, validation: kNoCurve },
    history: [0],
    head: 0,
    phase: "ready",
    message: (model.warnings ?? []).join("\n"),
    ...rest,
    model: { ...model, text, heads: headList(attentions) },
  });
}

/** Opens the config: a model with the initial weights of its seed. */
async function open() {
  pause();
  const text = state.text;
  const given = { yaml: text, files: files() };
  try {
    const { answer, accept, discard } = await prepare("open", given);
    if (text !== state.text) return discard();
    accept();
    show(answer, text);
    keepState("open", given);
  } catch (error) {
    if (text !== state.text) return;
    update({ phase: state.model ? state.phase : "broken", stale: Boolean(state.model) });
    if (error.kind !== "stopped") update({ problems: error.problems?.length ? problemsOf(error) : [] });
    sayError(error);
  }
}

/**
 * Opens a run, whose directory is `run` in the names of the files, or weights with the text of their config unless they
 * hold it. What is open stays unless all of it can be shown. Throws PageError.
 */
export async function load(contents, { run = null, config = "" }) {
  pause();
  const text = (name) => new TextDecoder().decode(contents[name] ?? new Uint8Array());
  const given = { files: { ...filesOf(config, configs), ...contents }, ...(config ? { config } : {}) };
  const { answer: model, accept } = await prepare("load", given);
  const shown = past(run === null ? "" : text(`${run}metrics.jsonl`), model.step);
  accept();
  checks += 1;
  const texts = Object.fromEntries(
    Object.keys(contents)
      .filter(isData)
      .map((name) => [name, text(name)]),
  );
  setOwn(filesOf(model.yaml, texts));
  show(model, model.yaml, {
    text: model.yaml,
    step: model.step,
    phase: model.trained || model.stopped ? "finished" : "ready",
    stopped: model.stopped ?? "",
    problems: [],
    ...shown,
  });
  keepState("load", given);
  const resolved = await ask("resolve", { yaml: model.yaml, files: files() }).catch(() => null);
  if (state.text === model.yaml) update({ resolved });
  await refreshHistory();
}

async function refreshHistory() {
  const { model } = state;
  const { steps } = await call("history");
  if (model === state.model) update({ history: steps });
}

async function advance(request) {
  const { model } = state;
  const answer = await call("step", request);
  if (model !== state.model) return;
  update(take(state, answer));
  if (answer.stopped) update({ phase: "finished" });
}

// Waits for a frame that shows what has changed; a hidden page has none and trains on.
const frame = () => new Promise((done) => (document.hidden ? setTimeout(done) : requestAnimationFrame(() => setTimeout(done))));

// Trains until the phase changes. The engine makes the next steps while the page draws the last ones.
async function loop() {
  const go = () => (state.phase === "training" ? call("step", { milliseconds: kMilliseconds }) : null);
  const { model } = state;
  let listed = 0;
  try {
    for (let next = go(); next;) {
      const answer = await next;
      if (model !== state.model) return;
      const isDue = performance.now() - keptAt > keepEvery;
      next = answer.stopped || isDue ? null : go();
      update(take(state, answer));
      if (answer.stopped) update({ phase: "finished" });
      if (performance.now() - listed > 1000) {
        listed = performance.now();
        refreshHistory().catch(() => {});
      }
      if (isDue && !answer.stopped) {
        await keep();
        next = go();
      }
      await frame();
    }
    await refreshHistory();
    await keep();
  } catch (error) {
    if (model === state.model && state.phase === "training") update({ phase: "ready" });
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
    await keep();
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
    keptAt = 0;
    if (state.phase !== "training") await keep();
  } catch (error) {
    sayError(error);
  }
  return state.model?.config;
}
