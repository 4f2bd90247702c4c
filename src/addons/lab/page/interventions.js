// Interventions in the forward pass: ablate a head, change a row of attention, patch a head from another input.
import { element, harmless, percent, points, shorter, state, subscribe } from "lab:report";
import { selected } from "./names.js";
import { intervene, intervenes, undo } from "./trace.js";

const without = (list, id) => list.filter((one) => (one.head ?? one) !== id);

/** Returns the switch that ablates the selected head, and what that costs. */
export function ablation() {
  const box = element("input", { type: "checkbox", id: "ablate", role: "switch" });
  const node = element("label", { class: "switch", for: "ablate" }, box, " ablate (output = 0)");
  const result = element("p", { class: "effect", id: "effect", role: "status" });
  box.addEventListener("change", () => {
    const { id } = selected();
    const rest = without(state.interventions.ablate, id);
    intervene({ ablate: box.checked ? [...rest, id] : rest });
  });
  const draw = () => {
    const head = selected();
    const { ablate } = state.interventions;
    box.checked = ablate.includes(head?.id);
    const { effect } = state;
    if (!ablate.length) return result.replaceChildren();
    if (!effect)
      return result.replaceChildren(state.phase === "training" ? "Pause to measure the effect on test sequences." : "measuring …");
    const { accuracy, sequences } = effect.baseline;
    const { accuracy_change: change, accuracy_interval: interval, loss_change: loss } = effect.zero;
    const [low, high] = (interval ?? []).map((x) => shorter(100 * x, 2));
    result.replaceChildren(
      element("b", {}, `Accuracy ${percent(accuracy)} → ${percent(accuracy + change)}`),
      `: ${points(change)} points${interval ? ` (95 % CI ${low} to ${high})` : ""}, loss ${shorter(loss, 3).replace(/^(?!−)/, "+")}, `,
      `on ${sequences.toLocaleString("en")} test sequences without ${ablate.length === 1 ? "head" : "heads"} ${ablate.join(", ")}.`,
    );
  };
  subscribe(["interventions", "effect", "head", "model", "phase"], draw);
  subscribe(["model"], () => {
    node.hidden = !selected();
  });
  return { node, result };
}

// Returns weights with another value at an index, so that they still sum to 1.
function withWeight(weights, index, value) {
  const rest = weights.reduce((sum, w, i) => (i === index ? sum : sum + w), 0);
  const visible = weights.filter((w, i) => i !== index && w !== null).length;
  return weights.map((w, i) => {
    if (w === null) return null;
    if (i === index) return visible ? value : 1;
    return rest > 1e-9 ? (w / rest) * (1 - value) : (1 - value) / visible;
  });
}

function rowEditor() {
  const bars = element("div", { class: "bars-of-row" });
  const list = element("select", { id: "row-query" });
  const details = element(
    "details",
    { class: "tool", id: "row-editor" },
    element("summary", {}, "Change a row of attention by hand"),
    element("label", { for: "row-query" }, "query ", list),
    bars,
  );
  const put = (query, weights) => {
    const { id } = selected();
    const rest = state.interventions.rows.filter((r) => r.head !== id || r.query !== query);
    intervene({ rows: [...rest, { head: id, query, weights: weights.map((w) => w ?? 0) }] });
  };
  const weightsNow = (head, query) =>
    state.trace.attention[head.layer][head.head][query].map((w, k) => (head.attention.causal && k > query ? null : w));
  const draw = () => {
    const head = selected();
    if (!head || !state.trace || !details.open || bars.contains(document.activeElement)) return;
    const queries = state.trace[head.attention.queries];
    const query = Math.min(Number(list.value || state.cell?.row || 0), queries.length - 1);
    list.replaceChildren(
      ...queries.map((token, i) => element("option", { value: i, selected: i === query }, `${i}: ${harmless(String(token))}`)),
    );
    const weights = weightsNow(head, query);
    bars.replaceChildren(
      ...state.trace[head.attention.keys].map((token, k) => {
        const slider = element("input", {
          type: "range",
          min: 0,
          max: 1,
          step: 0.01,
          value: weights[k] ?? 0,
          disabled: weights[k] === null,
        });
        slider.addEventListener("input", () => {
          put(query, withWeight(weightsNow(head, query), k, Number(slider.value)));
          [...bars.querySelectorAll("input")].forEach((other, j) => {
            const now = state.interventions.rows.at(-1).weights[j];
            if (other !== slider) other.value = now;
            other.nextSibling.textContent = now.toFixed(2);
          });
        });
        const value = element("output", { class: "number" }, weights[k] === null ? "–" : weights[k].toFixed(2));
        return element("label", { class: "bar" }, element("bdi", { class: "token" }, harmless(String(token))), slider, value);
      }),
    );
  };
  list.addEventListener("change", draw);
  details.addEventListener("toggle", () => {
    if (details.open && state.cell) list.replaceChildren(element("option", { value: state.cell.row, selected: true }, ""));
    draw();
  });
  subscribe(["trace", "head", "interventions"], draw);
  return details;
}

// Returns an input with its tokens in reverse order, for a start.
function reversed(text) {
  return state.model?.config.task.input_tokens === "characters" ? [...text].reverse().join("") : text.split(" ").reverse().join(" ");
}

function patch() {
  const field = element("input", { id: "patch", autocomplete: "off", spellcheck: "false" });
  const use = element("button", { id: "use-patch" }, "Patch");
  use.addEventListener("click", () => {
    const { id } = selected();
    const donor = field.value;
    const rest = without(state.interventions.patches, id);
    intervene({ patches: donor.trim() ? [...rest, { head: id, input: donor }] : rest });
  });
  field.addEventListener("keydown", (event) => event.key === "Enter" && use.click());
  subscribe(["input"], () => {
    if (!field.value || field.value.split(" ").length !== state.input.split(" ").length) field.value = reversed(state.input);
  });
  return element(
    "details",
    { class: "tool", id: "patch-editor" },
    element("summary", {}, "Patch this head from another input"),
    element("p", { class: "about" }, "The head's output comes from a pass over this input; everything else from the input above."),
    element("div", { class: "row" }, element("label", { class: "wide", for: "patch" }, element("span", {}, "other input"), field), use),
  );
}

// Lists what is in force, with a button that ends it.
function inForce() {
  const text = element("span");
  const end = element("button", { id: "undo", click: undo }, "Undo all");
  const node = element("p", { class: "in-force" }, text, " ", end);
  subscribe(["interventions"], () => {
    const { ablate, rows, patches } = state.interventions;
    const parts = [
      ...ablate.map((id) => `head ${id} ablated`),
      ...rows.map((r) => `row ${r.query} of head ${r.head} changed`),
      ...patches.map((p) => `head ${p.head} patched`),
    ];
    node.hidden = !intervenes();
    text.textContent = `In force: ${parts.join(", ")}.`;
  });
  return node;
}

/** Returns the tools that change a row or patch the selected head, and what is in force. */
export function interventions() {
  const node = element("div", { class: "interventions" }, rowEditor(), patch(), inForce());
  subscribe(["model"], () => {
    node.hidden = !selected();
  });
  return node;
}
