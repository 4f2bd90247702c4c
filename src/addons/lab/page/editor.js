// The config as YAML text, with the problems at their lines.
import { element, state, subscribe, update } from "lab:report";
import { setText } from "./session.js";

const kPause = 300; // milliseconds without a key before the text is checked

/** Returns the editor. */
export function editor() {
  const area = element("textarea", {
    id: "yaml",
    spellcheck: "false",
    autocapitalize: "off",
    wrap: "off",
    rows: 22,
    "aria-label": "Config in YAML",
    "aria-describedby": "yaml-problems",
  });
  const numbers = element("div", { class: "numbers", "aria-hidden": "true" });
  const list = element("ul", { class: "problems", id: "yaml-problems", role: "status" });
  let timer = null;
  const take = () => {
    timer = null;
    setText(area.value);
  };
  area.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(take, kPause);
    update({ checking: true });
    draw();
  });
  // Before another control changes the text, this one's changes are in it.
  area.addEventListener("blur", () => {
    if (timer === null) return;
    clearTimeout(timer);
    take();
  });
  area.addEventListener("scroll", () => {
    numbers.scrollTop = area.scrollTop;
  });
  const go = ({ line, column = 1 }) => {
    const before = area.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
    area.focus();
    area.setSelectionRange(at, at);
  };
  const draw = () => {
    const wrong = new Set(state.problems.map((p) => p.line));
    const count = area.value.split("\n").length;
    numbers.replaceChildren(
      ...Array.from({ length: count }, (_, i) => element("span", { class: wrong.has(i + 1) ? "wrong" : null }, String(i + 1))),
    );
  };
  subscribe(["text", "problems"], () => {
    if (area.value !== state.text && document.activeElement !== area) area.value = state.text;
    area.toggleAttribute("aria-invalid", state.problems.length > 0);
    draw();
  });
  subscribe(["problems"], () =>
    list.replaceChildren(
      ...state.problems.map((problem) =>
        element(
          "li",
          {},
          problem.line ? element("button", { class: "link", click: () => go(problem) }, `line ${problem.line}`) : null,
          problem.line ? ": " : "",
          problem.message,
        ),
      ),
    ),
  );
  return { node: element("div", { class: "editor" }, numbers, area), problems: list };
}
