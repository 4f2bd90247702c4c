// The guided lessons: each step asks a question, waits for one action, and says what was seen, with the numbers of the moment.
import { element, state, subscribe, update } from "lab:report";
import { kLessons } from "./lessons.js";
import { pause, setText } from "./session.js";
import { undo } from "./trace.js";

Object.assign(state, { lesson: null }); // {name, at, before, seen}: `before` is what the state was when the step began

const current = () => state.lesson && kLessons[state.lesson.name].steps[state.lesson.at];

// Returns what a step compares with: the state when it began.
const now = () => ({
  step: state.step,
  input: state.input,
  picked: state.picked,
  at: state.at,
  interventions: state.interventions,
  model: state.model,
  snapshots: state.snapshots.length,
});

async function begin(name) {
  pause();
  undo();
  const { config } = kLessons[name];
  await setText(config(), { keepRun: false });
  update({ lesson: { name, at: 0, before: now(), seen: "" } });
}

function go(by) {
  const { name, at } = state.lesson;
  update({ lesson: { name, at: at + by, before: now(), seen: "" } });
}

// Completes the current step once its action has been made and its numbers are there.
function check() {
  const step = current();
  const isFresh = Object.entries(state.trace?.of ?? { input: null }).every(([key, value]) => state[key] === value);
  if (!step || state.lesson.seen || !isFresh) return;
  const seen = step.seen(state.lesson.before);
  if (seen) update({ lesson: { ...state.lesson, seen } });
}

/** Returns the list of lessons. */
export function lessonChoice() {
  const list = element(
    "select",
    { id: "lesson-choice", change: () => (list.value ? begin(list.value) : update({ lesson: null })) },
    element("option", { value: "" }, "free play"),
    Object.entries(kLessons).map(([name, { title }]) => element("option", { value: name }, title)),
  );
  subscribe(["lesson"], () => {
    list.value = state.lesson?.name ?? "";
  });
  return element("label", { for: "lesson-choice" }, element("span", {}, "lesson "), list);
}

/** Returns the area of the lesson that is under way. */
export function lessonArea() {
  const heading = element("h2", { id: "lesson-title" });
  const ask = element("p", { id: "lesson-ask" });
  const task = element("p", { class: "task", id: "lesson-task" });
  const seen = element("p", { class: "seen", id: "lesson-seen", role: "status" });
  const back = element("button", { id: "lesson-back", click: () => go(-1) }, "Back");
  const next = element("button", { id: "lesson-next", click: () => (next.dataset.last ? update({ lesson: null }) : go(1)) });
  const leave = element("button", { id: "lesson-leave", click: () => update({ lesson: null }) }, "Leave");
  const node = element(
    "section",
    { id: "lesson", class: "panel lesson", "aria-labelledby": "lesson-title" },
    heading,
    ask,
    task,
    seen,
    element("div", { class: "buttons" }, back, next, leave),
  );
  subscribe(["lesson"], () => {
    document.querySelectorAll(".wanted").forEach((one) => one.classList.remove("wanted"));
    const step = current();
    node.hidden = !step;
    if (!step) return;
    const { title, steps } = kLessons[state.lesson.name];
    heading.textContent = `${title}, step ${state.lesson.at + 1} of ${steps.length}`;
    ask.textContent = step.ask;
    task.textContent = step.task;
    seen.textContent = state.lesson.seen;
    back.disabled = state.lesson.at === 0;
    const last = state.lesson.at === steps.length - 1;
    next.dataset.last = last ? "1" : "";
    next.textContent = last ? "Finish" : "Next";
    next.disabled = !state.lesson.seen;
    next.classList.toggle("primary", Boolean(state.lesson.seen));
    if (!state.lesson.seen) document.querySelector(step.wanted)?.classList.add("wanted");
    if (document.querySelector(step.wanted)?.closest("details")) document.querySelector(step.wanted).closest("details").open = true;
  });
  subscribe(["trace", "effect", "step", "phase", "cell", "picked", "at", "snapshots", "interventions", "model", "lesson"], check);
  return node;
}
