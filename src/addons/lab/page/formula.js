// The formula of what is shown, with the numbers of the moment: the query and the keys of a row, scores, softmax.
import { color, element, shorter, state, subscribe, word } from "lab:report";
import { selected } from "./names.js";

// Returns a vector as a row of colored cells.
function stripe(values, scale) {
  const canvas = element("canvas", { width: values.length, height: 1, class: "stripe", "aria-hidden": "true" });
  const image = new ImageData(values.length, 1);
  values.forEach((value, i) => image.data.set([...color(value, scale, true), 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.title = values.map((x) => shorter(x, 2)).join(" ");
  return canvas;
}

const term = (...children) => element("span", { class: "term" }, ...children);
const math = (...parts) => element("span", { class: "number" }, ...parts);

// Returns the lines of the formula for a cell, from the vectors at its row and at its column.
function linesOf({ query, dots, scale }, { key }, { row, column }, weights, labels) {
  const lines = [];
  const largest = Math.max(...query.map(Math.abs), ...key.map(Math.abs));
  const vector = (letter, index, label, values) =>
    element(
      "div",
      { class: "vector" },
      element("span", {}, letter, element("sub", {}, String(index)), " ", word(label)),
      stripe(values, largest),
    );
  lines.push(vector("q", row, labels.row, query), vector("k", column, labels.column, key));
  if (weights[column] === null) return [...lines, element("p", {}, "Masked: the query may not attend to this key; the weight is 0.")];
  const score = scale * dots[column];
  const sum = weights.reduce((total, weight, k) => (weight === null ? total : total + Math.exp(scale * dots[k] - score)), 0);
  const product = [`${shorter(dots[column], 2)} × ${shorter(scale, 3)} = `, element("b", {}, shorter(score, 2))];
  const up = () => element("sup", {}, "score");
  lines.push(element("p", {}, term("score = q·k × scale = ", math(...product))));
  const share = [`${shorter(Math.exp(score), 2)} / ${shorter(sum * Math.exp(score), 2)} = `, element("b", {}, shorter(1 / sum, 3))];
  if (Math.abs(1 / sum - weights[column]) < 0.01)
    lines.push(element("p", {}, term("weight = e", up(), " / Σ", element("sub", {}, "keys"), " e", up(), " = ", math(...share))));
  else
    lines.push(
      element("p", {}, term("Positions or an intervention change the scores: the weight is ", math(shorter(weights[column], 3)), ".")),
    );
  return lines;
}

/** Returns the formula of the cell that is pointed at. */
export function formula() {
  const node = element("div", { class: "formula", id: "formula" });
  const general = () => [
    element("p", {}, term("weight = softmax", element("sub", {}, "keys"), "( q · k / √d )"), term("output = Σ weight × value")),
  ];
  const draw = () => {
    const head = selected();
    node.hidden = !head;
    const { cell, trace } = state;
    const at = (token) => trace?.vectors?.find((v) => v.head === head?.id && v.token === token);
    const [query, key] = [at(cell?.row), at(cell?.column)];
    if (!query || !key) {
      if (!cell || head?.attention.cross) node.replaceChildren(...general());
      return;
    }
    const weights = trace.attention[head.layer][head.head][cell.row].map((w, k) => (head.attention.causal && k > cell.row ? null : w));
    const labels = { row: trace[head.attention.queries][cell.row], column: trace[head.attention.keys][cell.column] };
    node.replaceChildren(...linesOf(query, key, cell, weights, labels));
  };
  subscribe(["trace", "cell", "head", "theme"], draw);
  return node;
}
