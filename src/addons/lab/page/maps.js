// Attention as maps: small ones of all heads, and the large one of the selected head.
import {
  element,
  headTiles,
  legend,
  mapCanvas,
  markSelected,
  pictureOf,
  saveButtons,
  shorter,
  state,
  subscribe,
  thumbnail,
  update,
  weightMap,
  word,
} from "lab:report";
import { heads, selected } from "./names.js";

Object.assign(state, { picked: 0 }); // how often a head was chosen

/** Returns the attention of a head in the trace as a map of the report. */
function mapOf({ layer, head, attention: { queries, keys, causal } }) {
  const weights = state.trace.attention[layer][head];
  return weightMap((r, c) => weights[r][c], 1e-4, state.trace[queries], state.trace[keys], causal);
}

/** Returns the maps of all heads, by layer. The arrow keys move between heads. */
export function tiles() {
  let all = [];
  const node = element("div", { class: "tiles", role: "group", "aria-label": "Heads" });
  subscribe(["model"], () => {
    const { tiles, rows } = headTiles(heads(), {
      row: "tile-row",
      layerOf: (head) => head.attention.title,
      attributes: (head) => ({ "data-head": head.id }),
      content: (head) => head.id,
      choose: (index) => update({ head: index, cell: null, picked: state.picked + 1 }),
    });
    all = tiles;
    node.hidden = all.length < 2;
    node.replaceChildren(...rows);
  });
  subscribe(["trace", "head", "theme", "interventions"], () => {
    markSelected(all);
    all.forEach(({ h, button, canvas }) => {
      const off = state.interventions.ablate.includes(h.id);
      button.classList.toggle("ablated", off);
      button.setAttribute("aria-label", `${h.name}${off ? ", ablated" : ""}`);
      if (state.trace?.attention[h.layer]) thumbnail(canvas, mapOf(h));
    });
  });
  return node;
}

/** Returns the large map of the selected head. The pointer or the arrow keys choose a cell; a click keeps it. */
export function largeMap() {
  const same = (a, b) => a?.row === b?.row && a?.column === b?.column;
  let map = null;
  let kept = false;
  const { node, show } = mapCanvas({ id: "map", "aria-describedby": "cell" }, (cell, event) => {
    if (event.type === "blur" || event.key === "Enter" || (kept && event.type.startsWith("pointer"))) return;
    if (event.type === "click") kept = cell !== null && !(kept && same(cell, state.cell));
    if (event.type === "keydown") kept = cell !== null;
    if (!same(cell, state.cell)) update({ cell });
  });
  const cell = element("p", { id: "cell", class: "cell number", "aria-live": "polite" });
  const scale = element("div");
  const step = () => `step ${state.at ?? state.step}`;
  const picture = () => pictureOf(map, `${selected().name} ${step()}`);
  const below = element("div", { class: "below", hidden: true }, scale, saveButtons(picture, "this map"));
  const heading = element("h3", { id: "map-title" });

  const draw = () => {
    const head = selected();
    const found = head && state.trace?.attention[head.layer];
    node.hidden = below.hidden = cell.hidden = !found;
    if (!found) return;
    map = mapOf(head);
    const at = show(map, state.cell);
    if (!at) {
      cell.textContent = "Point at a cell, or use the arrow keys.";
      return;
    }
    const { row, column } = at;
    const weight = map.at(row, column);
    cell.replaceChildren(
      `query ${row} `,
      word(map.rowLabels[row]),
      ` → key ${column} `,
      word(map.columnLabels[column]),
      weight === null ? ": masked" : `: ${shorter(weight, 3)}`,
    );
  };
  const title = () => {
    const head = selected();
    heading.textContent = head ? head.name.replace(/^layer/, "Layer") : state.model ? "This model has no attention." : "";
    node.setAttribute("aria-label", head ? `Attention of ${head.name}: arrow keys move between cells` : "Attention");
    if (map && head) scale.replaceChildren(legend(map));
  };
  subscribe(["trace", "head", "cell", "theme"], draw);
  subscribe(["model"], () => {
    map = null;
    kept = false;
    below.hidden = true;
  });
  subscribe(["trace", "head", "model", "theme"], title);
  return { heading, node: [node, cell], below };
}
