// Checks the gradients of the model with a button.
import { element, plainTable, state, subscribe } from "lab:report";
import { call } from "./engine.js";
import { sayError } from "./session.js";

const kMarks = { ok: "✓", wrong: "✗", undecided: "?" };

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
      const count = (verdict) => checks.filter((c) => c.verdict === verdict).length;
      const worst = Math.max(...checks.map((c) => c.worst_error));
      result.replaceChildren(
        element(
          "p",
          { class: count("wrong") || !count("ok") ? "warning" : "" },
          `${checks.length} gradients checked in double, ${count("wrong")} wrong, ${count("undecided")} undecided; ` +
            `worst relative error ${short(worst)}.`,
        ),
        element(
          "details",
          {},
          element("summary", {}, "Every parameter"),
          plainTable(
            ["parameter", "analytic", "numeric", "±", "error"],
            checks.map((c) => [
              `${kMarks[c.verdict]} ${c.input}${c.reason ? `: ${c.reason}` : ""}`,
              ...[c.analytic, c.numeric, c.error, c.worst_error].map(short),
            ]),
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
