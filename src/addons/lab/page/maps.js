// Attention as maps: small ones of all heads, and the large one of the selected head.
import { drawMap, element, layOut, legend, pictureOf, saveButtons, shorter, state, subscribe, thumbnail, update, word } from "lab:report";
import { heads, selected } from "./names.js";

Object.assign(state, { picked: 0 }); // how often a head was chosen

/** Returns the attention of a head in the trace as a map of the report. */
function mapOf({ layer, head, attention }) {
  const weights = state.trace.attention[layer][head];
  const rowLabels = state.trace[attention.queries];
  const columnLabels = state.trace[attention.keys];
  return {
    rows: rowLabels.length,
    columns: columnLabels.length,
    at: (r, c) => (attention.causal && c > r ? null : weights[r][c]),
    step: 1e-4,
    rowLabels,
    columnLabels,
    causal: attention.causal,
    axes: ["query", "key"],
    full: state.full,
  };
}

function tile(head, index) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const button = element(
    "button",
    { class: "tile", "data-head": head.id, click: () => update({ head: index, cell: null, picked: state.picked + 1 }) },
    canvas,
    element("span", {}, head.id),
  );
  const draw = () => {
    button.setAttribute("aria-pressed", String(index === state.head));
    button.tabIndex = index === state.head ? 0 : -1;
    const off = state.interventions.ablate.includes(head.id);
    button.classList.toggle("ablated", off);
    button.setAttribute("aria-label", `${head.name}${off ? ", ablated" : ""}`);
    if (state.trace?.attention[head.layer]) thumbnail(canvas, mapOf(head));
  };
  return { button, draw, head };
}

/** Returns the maps of all heads, by layer. The arrow keys move between heads. */
export function tiles() {
  let all = [];
  const node = element("div", {
    class: "tiles",
    role: "group",
    "aria-label": "Heads",
    keydown: (event) => {
      const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
      const now = selected();
      const next = heads().findIndex((h) => h.layer === now.layer + down && h.head === now.head + right);
      if ((!down && !right) || next < 0) return;
      event.preventDefault();
      update({ head: next, cell: null, picked: state.picked + 1 });
      all[next].button.focus();
    },
  });
  subscribe(["model"], () => {
    all = heads().map(tile);
    const layers = [...new Set(heads().map((h) => h.attention.title))];
    node.hidden = all.length < 2;
    node.replaceChildren(
      ...layers.map((name) =>
        element(
          "div",
          { class: "tile-row" },
          element("h4", {}, name),
          all.filter(({ head }) => head.attention.title === name).map(({ button }) => button),
        ),
      ),
    );
  });
  subscribe(["trace", "head", "theme", "interventions"], () => all.forEach(({ draw }) => draw()));
  return node;
}

const within = (x, size) => Math.min(Math.max(x, 0), size - 1);

/** Returns the large map of the selected head. The pointer or the arrow keys choose a cell; a click keeps it. */
export function largeMap() {
  const canvas = element("canvas");
  const node = element(
    "div",
    {
      class: "map",
      id: "map",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-describedby": "cell",
    },
    canvas,
  );
  const cell = element("p", { id: "cell", class: "cell number", "aria-live": "polite" });
  const scale = element("div");
  const step = () => `step ${state.at ?? state.step}`;
  const picture = () => pictureOf(map, `${selected().name} ${step()}`);
  const below = element("div", { class: "below", hidden: true }, scale, saveButtons(picture, "this map"));
  const heading = element("h3", { id: "map-title" });
  let map, box;
  let kept = false;

  const draw = () => {
    const head = selected();
    const found = head && state.trace?.attention[head.layer];
    node.hidden = below.hidden = cell.hidden = !found;
    if (!found || !node.clientWidth) return;
    map = mapOf(head);
    box = layOut(map, node.clientWidth, canvas.getContext("2d"));
    const { row, column } = state.cell ?? {};
    const at = row < map.rows && column < map.columns ? state.cell : null;
    drawMap(canvas, map, box, at);
    if (!at) {
      cell.textContent = "Point at a cell, or use the arrow keys.";
      return;
    }
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
  const cellAt = (event) => {
    const at = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - at.top - box.top) / box.cell);
    const column = Math.floor((event.clientX - at.left - box.left) / box.cell);
    return row >= 0 && row < map.rows && column >= 0 && column < map.columns ? { row, column } : null;
  };
  const same = (a, b) => a?.row === b?.row && a?.column === b?.column;
  const point = (cell) => !same(cell, state.cell) && update({ cell });
  node.addEventListener("pointermove", (event) => !kept && map && point(cellAt(event)));
  node.addEventListener("pointerleave", () => !kept && point(null));
  node.addEventListener("click", (event) => {
    if (!map) return;
    const next = cellAt(event);
    kept = next !== null && !(kept && same(next, state.cell));
    point(next);
  });
  node.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") {
      kept = false;
      point(null);
    }
    if (!by || !map) return;
    event.preventDefault();
    kept = true;
    const { row, column } = state.cell ?? { row: -by[0], column: -by[1] };
    point({ row: within(row + by[0], map.rows), column: within(column + by[1], map.columns) });
  });
  new ResizeObserver(draw).observe(node);
  subscribe(["trace", "head", "cell", "theme"], draw);
  subscribe(["model"], () => {
    map = null;
    kept = false;
    below.hidden = true;
  });
  subscribe(["trace", "head", "model", "theme"], title);
  return { heading, node: [node, cell], below };
}
