// Checks the gradients of the model with a button.
import { element, plainTable, state, subscribe } from "lab:report";
import { call } from "./engine.js";
import { sayError } from "./session.js";

const short = (x) => (typeof x === "number" ? x.toExponential(1).replace("e-", "e−") : "–");

/** Returns the button and the table of its result. */
export function gradients() {
  const result = element("div", { "aria-live": "polite" });
  const button = element("button", { id: "gradcheck" }, "Check gradients");
  button.addEventListener("click", async () => {
    button.disabled = true;
    result.textContent = "Comparing every gradient with finite differences, in double …";
    try {
      const checks = await call("gradcheck");
      const wrong = checks.filter((c) => !c.passed).length;
      const worst = Math.max(...checks.map((c) => c.worst_error));
      result.replaceChildren(
        element(
          "p",
          { class: wrong ? "warning" : "" },
          `${checks.length} gradients checked in double, ${wrong} wrong; worst relative error ${short(worst)}.`,
        ),
        element(
          "details",
          {},
          element("summary", {}, "Every parameter"),
          plainTable(
            ["parameter", "analytic", "numeric", "error"],
            checks.map((c) => [`${c.passed ? "✓" : "✗"} ${c.input}`, short(c.analytic), short(c.numeric), short(c.worst_error)]),
          ),
        ),
      );
    } catch (error) {
      result.textContent = "";
      sayError(error);
    }
    button.disabled = false;
  });
  subscribe(["model"], () => {
    result.replaceChildren();
    button.disabled = !state.model;
  });
  return element("div", { class: "gradients" }, button, result);
}
