// The forward pass over the chosen input, as it is now or was at a step, with the interventions.
import { state, subscribe, update } from "lab:report";
import { call } from "./engine.js";
import { sayError } from "./session.js";
import { selected } from "./names.js";

const kNone = { ablate: [], rows: [], patches: [] };

Object.assign(state, {
  input: "", // as it is typed
  expected: null, // the targets of the input, if it is an example of the task
  interventions: kNone, // heads that are ablated, [{head, query, weights}], [{head, input}]
  trace: null, // the pass with the interventions; `of` is what it was made of
  plain: null, // the pass without
  cell: null, // {row, column} of the selected head's map
  effect: null, // of ablating the chosen heads on test sequences
});

let example = -1;

/** Returns whether anything intervenes in the pass. */
export const intervenes = () => Object.values(state.interventions).some((list) => list.length > 0);

/** Changes the interventions. */
export const intervene = (changes) => update({ interventions: { ...state.interventions, ...changes } });

/** Ends all interventions. */
export const undo = () => update({ interventions: kNone, effect: null });

/** Takes over an input of the user. */
export const setInput = (input) => update({ input, expected: null });

/** Chooses the next validation sequence as the input, after the last one the first. */
export async function nextExample() {
  const model = state.model;
  const at = async (first) => (await call("examples", { split: "validation", first, count: 1 }))[0];
  try {
    let one = await at((example += 1));
    if (!one) one = await at((example = 0));
    if (one && model === state.model) update({ input: one.text, expected: one.targets });
  } catch (error) {
    sayError(error);
  }
}

function requestOf({ ablate, rows, patches }) {
  const request = { input: state.input };
  if (state.at !== null) request.at = state.at;
  const head = selected();
  if (head && state.cell && !head.attention.cross)
    request.vectors = [...new Set([state.cell.row, state.cell.column])].map((token) => ({ head: head.id, token }));
  if (ablate.length) request.ablate = ablate;
  if (rows.length) request.attention = rows;
  if (patches.length) request.patch = patches;
  return request;
}

let busy = false;
let again = false;

/** Reads the pass again; calls while one is under way are answered by one more. */
async function refresh() {
  again = true;
  if (busy || !state.model || !state.input) return;
  busy = true;
  while (again && state.input) {
    again = false;
    const { model, input, at, interventions: applied } = state;
    const changes = intervenes() ? requestOf(applied) : null;
    try {
      const plain = await call("trace", requestOf(kNone));
      const trace = changes ? await call("trace", changes) : plain;
      trace.of = { input, at, interventions: applied };
      if (model === state.model) update({ plain, trace, ...(state.message === kWrongInput.said ? { message: "" } : {}) });
    } catch (error) {
      if (error.kind === "stopped" || model !== state.model || input !== state.input) continue;
      sayError(error);
      kWrongInput.said = state.message;
    }
  }
  busy = false;
}

const kWrongInput = { said: null };

let measured = 0;

/** Measures what ablating the chosen heads costs on test sequences. */
async function measure() {
  const heads = state.interventions.ablate;
  const turn = ++measured;
  if (!heads.length) return update({ effect: null });
  try {
    const effect = await call("ablate", { heads, sequences: 1000, ...(state.at === null ? {} : { at: state.at }) });
    if (turn === measured) update({ effect: { ...effect, step: state.at ?? state.step } });
  } catch (error) {
    sayError(error);
  }
}

/** Starts to follow the model, the input and the interventions. */
export function follow() {
  let model = null;
  let ablated = "";
  subscribe(["model"], () => {
    if (!state.model || model === state.model) return;
    model = state.model;
    example = -1;
    // The input of another model may be none of this one, whose own words, such as a warning, an error would replace.
    update({ input: "", interventions: kNone, effect: null, trace: null, plain: null, cell: null });
    nextExample().then(refresh);
  });
  subscribe(["step", "at", "input", "interventions", "cell", "head"], refresh);
  subscribe(["interventions", "at", "phase"], () => {
    const now = `${state.interventions.ablate} ${state.at} ${state.phase === "training" ? "" : state.step}`;
    if (now === ablated || state.phase === "training") return;
    ablated = now;
    measure();
  });
}
