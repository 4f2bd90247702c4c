// Maps: colors, thumbnails, and the large map, whose cells are read with the pointer or the arrow keys.

let palettes = {}; // of the current theme

const themeColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Returns 257 colors between the stops --NAME-0 to --NAME-4 of the style sheet, linearly.
function palette(name) {
  if (palettes.theme !== state.theme) palettes = { theme: state.theme };
  palettes[name] ??= Array.from({ length: 257 }, (_, i) => {
    const stop = (k) => [1, 3, 5].map((at) => parseInt(themeColor(`${name}-${k}`).slice(at, at + 2), 16));
    const low = Math.min(Math.floor(i / 64), 3);
    const [from, to] = [stop(low), stop(low + 1)];
    return from.map((channel, c) => Math.round(channel + (i / 64 - low) * (to[c] - channel)));
  });
  return palettes[name];
}

// Returns red, green and blue of a value: from 0 (the background) to `full`, or, with a sign, from -full over 0 to full.
function color(value, full, hasSign) {
  const share = full > 0 ? Math.min(Math.max(value / full, -1), 1) : 0;
  return hasSign ? palette("signed")[Math.round(128 + 128 * share)] : palette("scale")[Math.round(256 * share)];
}

// Returns the map with one pixel per cell. Masked cells stay transparent.
function pixels(map) {
  const canvas = element("canvas", { width: map.columns, height: map.rows });
  const image = new ImageData(map.columns, map.rows);
  for (let r = 0, at = 0; r < map.rows; ++r)
    for (let c = 0; c < map.columns; ++c, at += 4) {
      const value = map.at(r, c);
      if (value === null) continue;
      const [red, green, blue] = color(value, map.full, map.signed);
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = 255;
    }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// Means of fewer sequences are marked; EvalResult::kEnoughSequences of the program.
const kFewSequences = 30;

// Draws the cells of a mean that no sequence has in a flat color, and with `dots` marks those of few sequences.
function markCells(context, map, x, y, cell, dots) {
  if (!map.hasFew && !map.hasNone) return;
  for (let r = 0; r < map.rows; ++r)
    for (let c = 0; c < map.columns; ++c) {
      const n = map.count(r, c);
      const none = n === 0;
      if (!none && (!dots || !map.hasFew || n >= kFewSequences || map.at(r, c) === null)) continue;
      const size = none ? cell : Math.max(1.5, cell / 7);
      const margin = (cell - size) / 2;
      context.fillStyle = themeColor(none ? "masked" : "pointer");
      context.fillRect(x + c * cell + margin, y + r * cell + margin, size, size);
    }
}

function hatching(context) {
  const tile = element("canvas", { width: 8, height: 8 });
  const pen = tile.getContext("2d");
  pen.strokeStyle = themeColor("hatch");
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (const at of [-8, 0, 8]) {
    pen.moveTo(at - 1, 9);
    pen.lineTo(at + 9, -1);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

// Draws the map into a box of the canvas, with masked cells hatched.
function paint(context, map, x, y, width, height) {
  context.imageSmoothingEnabled = false;
  if (map.causal) {
    context.fillStyle = hatching(context);
    context.fillRect(x, y, width, height);
  }
  context.drawImage(pixels(map), x, y, width, height);
  markCells(context, map, x, y, width / map.columns, true);
}

// Draws a thumbnail. Masked keys have a flat color, since hatching would dominate a small picture.
function thumbnail(canvas, map) {
  canvas.width = canvas.height = Math.max(128, 2 * map.rows, 2 * map.columns);
  const context = canvas.getContext("2d");
  const cell = canvas.width / Math.max(map.rows, map.columns);
  context.imageSmoothingEnabled = false;
  if (map.causal) {
    context.fillStyle = themeColor("masked");
    context.fillRect(0, 0, cell * map.columns, cell * map.rows);
  }
  context.drawImage(pixels(map), 0, 0, cell * map.columns, cell * map.rows);
  markCells(context, map, 0, 0, cell, false);
}

// Returns the values at the left end, the middle and the right end of the color scale.
function scaleEnds(map) {
  if (map.ends) return map.ends;
  const digits = map.full < 0.1 ? 3 : 2;
  if (map.signed) return [shorter(-map.full, digits), "0", shorter(map.full, digits)];
  return ["0", String(map.full / 2), map.full < 1 ? `≥ ${map.full}` : "1"];
}

// Returns the legend of the colors.
function legend(map) {
  return element(
    "div",
    { class: "legend" },
    element(
      "div",
      {},
      element("div", { class: map.signed ? "ramp signed" : "ramp" }),
      element(
        "div",
        { class: "ends" },
        scaleEnds(map).map((end) => element("span", {}, end)),
      ),
    ),
    map.causal ? element("span", { class: "masked" }, element("i"), "masked key") : null,
    map.hasNone ? element("span", { class: "none" }, element("i"), "no sequence") : null,
    map.hasFew ? element("span", { class: "few" }, element("i"), `fewer than ${kFewSequences} sequences`) : null,
  );
}

const kFont = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

// Returns the layout of a large map in a box of the given width, in CSS pixels.
function layOut(map, width, context) {
  const kTitle = 18; // height of an axis title
  context.font = kFont;
  const longest = (labels) => Math.max(...labels.map((label) => context.measureText(clipped(label)).width));
  const left = kTitle + Math.ceil(longest(map.rowLabels)) + 8;
  const cell = Math.min(Math.max((width - left - 1) / map.columns, map.least ?? 0), 30);
  const lying = longest(map.columnLabels) + 4 <= cell;
  const top = kTitle + (lying ? 18 : Math.ceil(longest(map.columnLabels)) + 8);
  const tall = Math.max(cell * map.rows, context.measureText(`← ${map.axes[0]}`).width);
  return { left, top, cell, lying, width: left + cell * map.columns + 1, height: top + tall + 1 };
}

// Returns the texts of a large map: the labels of rows and columns, as many as fit and those of the cell at the cursor, and
// the titles of both axes. `align` is as text-anchor; a turned text reads from bottom to top.
function textsOf(map, box, cursor) {
  const every = Math.ceil(12 / box.cell);
  const labels = (names, chosen, put) =>
    names
      .map((name, i) => ({ text: clipped(name), i, chosen: i === chosen, ...put((i + 0.5) * box.cell) }))
      .filter(({ i }) => i === chosen || (i % every === 0 && !(chosen !== undefined && Math.abs(i - chosen) * box.cell < 12)));
  return [
    ...labels(map.rowLabels, cursor?.row, (y) => ({ x: box.left - 5, y: box.top + y, align: "end" })),
    ...labels(map.columnLabels, cursor?.column, (x) => ({
      x: box.left + x,
      y: box.top - (box.lying ? 9 : 5),
      align: box.lying ? "middle" : "start",
      turned: !box.lying,
    })),
    { text: `← ${map.axes[0]}`, x: 7, y: box.top, align: "end", turned: true },
    { text: `${map.axes[1]} →`, x: box.left, y: 7, align: "start" },
  ];
}

function drawText(context, { text, x, y, align, turned, chosen }) {
  context.save();
  context.translate(x, y);
  if (turned) context.rotate(-Math.PI / 2);
  context.textBaseline = "middle";
  context.textAlign = { start: "left", middle: "center", end: "right" }[align];
  context.font = (chosen ? "bold " : "") + kFont;
  context.fillStyle = themeColor(chosen ? "ink" : "muted");
  context.fillText(text, 0, 0);
  context.restore();
}

function drawMap(canvas, map, box, cursor) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * density);
  canvas.height = Math.round(box.height * density);
  canvas.style.width = `${box.width}px`;
  canvas.style.height = `${box.height}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  const [width, height] = [box.cell * map.columns, box.cell * map.rows];
  paint(context, map, box.left, box.top, width, height);
  context.strokeStyle = themeColor("frame");
  context.strokeRect(box.left, box.top, width, height);
  for (const text of textsOf(map, box, cursor)) drawText(context, text);
  if (!cursor) return;
  context.strokeStyle = themeColor("pointer");
  context.lineWidth = 2;
  context.strokeRect(box.left + cursor.column * box.cell, box.top + cursor.row * box.cell, box.cell, box.cell);
}

// Returns a large map with its legend and buttons that save it. describe(map, row, column) returns the text of the tooltip;
// pick(row), if given, is called for a clicked row. show(map, title) draws another map; link(other) moves the cursor of
// another map to the same cell.
function largeMap(name, describe, pick) {
  const canvas = element("canvas");
  const tip = element("output", { class: "tip", "aria-live": "polite", hidden: true });
  const node = element(
    "div",
    {
      class: "map",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": `${name}: arrow keys move between cells${pick ? ", Enter selects the query" : ""}`,
    },
    canvas,
    tip,
  );
  const below = element("div", { class: "below" });
  let map,
    box,
    peer = null,
    cursor = null;

  const draw = () => {
    box = layOut(map, node.clientWidth, canvas.getContext("2d"));
    drawMap(canvas, map, box, cursor);
  };
  const mark = (row, column) => {
    if (!map) return;
    cursor = row >= 0 && row < map.rows && column >= 0 && column < map.columns ? { row, column } : null;
    drawMap(canvas, map, box, cursor);
    tip.hidden = !cursor;
    if (!cursor) return;
    tip.replaceChildren(...[describe(map, row, column)].flat());
    const x = box.left + (column + 1) * box.cell + 8;
    const fits = x + tip.offsetWidth <= node.clientWidth;
    tip.style.left = `${Math.max(0, fits ? x : Math.min(x - box.cell - tip.offsetWidth - 16, node.clientWidth - tip.offsetWidth))}px`;
    const under = box.top + (row + 1) * box.cell + 8;
    tip.style.top = `${fits || under + tip.offsetHeight <= box.height ? under : box.top + row * box.cell - tip.offsetHeight - 8}px`;
  };
  const point = (row, column) => {
    mark(row, column);
    peer?.mark(row, column);
  };
  const cellAt = (event) => {
    const at = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - at.top - box.top) / box.cell), Math.floor((event.clientX - at.left - box.left) / box.cell)];
  };
  node.addEventListener("pointermove", (event) => point(...cellAt(event)));
  node.addEventListener("pointerleave", () => point(-1, -1));
  node.addEventListener("blur", () => point(-1, -1));
  node.addEventListener("click", (event) => {
    point(...cellAt(event));
    if (cursor && pick) pick(cursor.row);
  });
  node.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") point(-1, -1);
    if (event.key === "Enter" && cursor && pick) pick(cursor.row);
    if (!step) return;
    event.preventDefault();
    const within = (x, size) => Math.min(Math.max(x, 0), size - 1);
    point(cursor ? within(cursor.row + step[0], map.rows) : 0, cursor ? within(cursor.column + step[1], map.columns) : 0);
  });
  new ResizeObserver(() => map && draw()).observe(node);
  return {
    node: element("div", { class: "large" }, node, below),
    mark,
    link: (other) => {
      peer = other;
    },
    show: (next, title) => {
      [map, cursor] = [next, null];
      tip.hidden = true;
      below.replaceChildren(
        legend(map),
        saveButtons(() => pictureOf(map, title), `the map of ${title}`),
      );
      draw();
    },
  };
}

// Returns a value with as many digits as its quantization step supports, and its error bound.
function precisely(value, step) {
  if (value === null) return "masked";
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
  return `${shorter(value, digits)} ± ${(step / 2).toPrecision(1).replace(/e-0?/, "e−")}`;
}
