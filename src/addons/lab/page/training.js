// The area of training: buttons, learning rate, progress, curves, gradient check.
import { element, grouped, percent, shorter, state, subscribe } from "lab:report";
import { curves } from "./curves.js";
import { gradients } from "./gradients.js";
import { pause, reset, set, stepOnce, stop, train } from "./session.js";
import { scores } from "./timeline.js";

const kWhy = {
  "last step": "all steps are done",
  target: "the target is reached",
  patience: "the validation loss stopped falling",
};

function buttons() {
  const main = element("button", { class: "primary", id: "train", click: () => (state.phase === "training" ? pause() : train()) });
  const one = element("button", { id: "step", click: stepOnce }, "Step");
  const again = element("button", { id: "reset", click: reset }, "Reset");
  const halt = element("button", { id: "stop", title: "End what takes long; the run stays as it was lately", click: stop }, "Stop");
  subscribe(["busy"], () => {
    halt.hidden = !state.busy;
  });
  subscribe(["phase", "step", "stale", "checking"], () => {
    const training = state.phase === "training";
    main.textContent = training ? "Pause" : state.step > 0 && state.phase !== "finished" ? "Continue" : "Train";
    main.disabled = !training && (state.phase !== "ready" || state.checking);
    one.disabled = state.phase !== "ready" || state.checking;
    again.disabled = !state.model || state.phase === "starting";
    again.textContent = state.stale ? "Reset to the new config" : "Reset";
    again.classList.toggle("primary", state.stale);
  });
  return element("div", { class: "row", role: "group", "aria-label": "Training" }, main, one, again, halt);
}

function learningRate() {
  const shown = element("output", { class: "number", for: "rate" });
  const slider = element("input", { type: "range", id: "rate", min: -5, max: -1, step: 0.05 });
  const text = (x) => Number(x.toPrecision(2)).toString();
  const chosen = () => Number((10 ** slider.value).toPrecision(2));
  const say = (value) => {
    shown.textContent = text(value);
    slider.setAttribute("aria-valuetext", text(value));
  };
  const show = (config) => {
    const value = config?.train?.optimizer?.lr;
    if (!value) return;
    slider.value = Math.log10(value);
    say(value);
  };
  slider.addEventListener("input", () => say(chosen()));
  slider.addEventListener("change", async () => show(await set("train.optimizer.lr", chosen())));
  subscribe(["model", "phase"], () => {
    slider.disabled = state.phase !== "ready" && state.phase !== "training";
  });
  subscribe(["model"], () => show(state.model?.config));
  return element("label", { class: "rate", for: "rate" }, element("span", {}, "learning rate"), slider, shown);
}

function progress() {
  const bar = element("progress", { "aria-label": "Steps done", max: 1, value: 0 });
  const line = element("p", { class: "status number", id: "status" });
  subscribe(["step", "model", "rate", "phase", "stopped"], () => {
    const steps = state.model?.steps ?? 1;
    bar.max = steps;
    bar.value = state.step;
    const [, , accuracy] = state.curves.train.last ?? [];
    const parts = [`step ${grouped(state.step)} of ${grouped(steps)}`];
    if (accuracy !== undefined) parts.push(`${percent(accuracy)} right`);
    if (state.rate)
      parts.push(
        `${shorter(state.rate.steps, state.rate.steps < 10 ? 1 : 0)} steps/s`,
        `${grouped(Math.round(state.rate.sequences))} sequences/s`,
      );
    line.textContent = state.model ? parts.join(" · ") : state.phase === "broken" ? "nothing is open" : "starting …";
  });
  return [bar, line];
}

// Says when training ends, and the result.
function ending() {
  const line = element("p", { class: "ending", role: "status", id: "ending" });
  subscribe(["stopped", "phase"], () => {
    const [, , accuracy] = state.curves.validation.last ?? [];
    const result = accuracy === undefined ? "" : ` Validation accuracy ${percent(accuracy)}.`;
    line.textContent = state.phase === "finished" ? `Finished: ${kWhy[state.stopped] ?? state.stopped}.${result}` : "";
  });
  return line;
}

/** Returns what training shows: curves, scores of the selected head, the check of gradients. */
export function results() {
  return element("section", { id: "results", class: "panel", "aria-label": "Curves" }, curves(), scores(), gradients());
}

/** Returns the area of training. */
export function training() {
  const message = element("p", { class: "warning", role: "alert", id: "message" });
  subscribe(["message"], () => {
    message.textContent = state.message;
  });
  return element(
    "section",
    { id: "training", class: "panel", "aria-labelledby": "training-title", tabindex: "-1" },
    element("h2", { id: "training-title" }, "Training"),
    buttons(),
    learningRate(),
    progress(),
    message,
    ending(),
  );
}
