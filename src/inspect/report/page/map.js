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

// Returns rectangles, [x, y, width, height, fill]: the cells of a mean that no sequence has, and with `dots` the marks of
// those of few sequences.
function marksOf(map, x, y, cell, dots) {
  const out = [];
  for (let r = 0; r < map.rows && (map.hasFew || map.hasNone); ++r)
    for (let c = 0; c < map.columns; ++c) {
      const n = map.count(r, c);
      if (n > 0 && (!dots || !map.hasFew || n >= kFewSequences || map.at(r, c) === null)) continue;
      const size = n ? Math.max(1.5, cell / 7) : cell;
      const margin = (cell - size) / 2;
      out.push([x + c * cell + margin, y + r * cell + margin, size, size, themeColor(n ? "pointer" : "masked")]);
    }
  return out;
}

function fillAll(context, rectangles) {
  for (const [x, y, width, height, fill] of rectangles) {
    context.fillStyle = fill;
    context.fillRect(x, y, width, height);
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

// Draws the cells of the map at a place of the canvas, with `masked` behind masked ones, and with `dots` for means of few sequences.
function paint(context, map, x, y, cell, masked, dots) {
  const [width, height] = [cell * map.columns, cell * map.rows];
  context.imageSmoothingEnabled = false;
  if (map.causal) fillAll(context, [[x, y, width, height, masked]]);
  context.drawImage(pixels(map), x, y, width, height);
  fillAll(context, marksOf(map, x, y, cell, dots));
}

// Draws a thumbnail. Masked keys have a flat color, since hatching would dominate a small picture.
function thumbnail(canvas, map) {
  canvas.width = canvas.height = Math.max(128, 2 * map.rows, 2 * map.columns);
  paint(canvas.getContext("2d"), map, 0, 0, canvas.width / Math.max(map.rows, map.columns), themeColor("masked"), false);
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
  const ends = scaleEnds(map).map((end) => element("span", {}, end));
  const ramp = element("div", { class: map.signed ? "ramp signed" : "ramp" });
  const sample = (name, text) => element("span", { class: name }, element("i"), text);
  return element(
    "div",
    { class: "legend" },
    element("div", {}, ramp, element("div", { class: "ends" }, ends)),
    map.what ? element("span", {}, map.what) : null,
    map.causal ? sample("masked", "masked key") : null,
    map.hasNone ? sample("none", "no sequence") : null,
    map.hasFew ? sample("few", `fewer than ${kFewSequences} sequences`) : null,
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
  const every = Math.ceil((map.least ?? 12) / box.cell);
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
  paint(context, map, box.left, box.top, box.cell, hatching(context), true);
  context.strokeStyle = themeColor("frame");
  context.strokeRect(box.left, box.top, box.cell * map.columns, box.cell * map.rows);
  for (const text of textsOf(map, box, cursor)) drawText(context, text);
  context.strokeStyle = themeColor("pointer");
  if (map.chosen < map.rows) context.strokeRect(box.left, box.top + map.chosen * box.cell, box.cell * map.columns, box.cell);
  if (!cursor) return;
  context.lineWidth = 2;
  context.strokeRect(box.left + cursor.column * box.cell, box.top + cursor.row * box.cell, box.cell, box.cell);
}

const kArrows = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// Returns a canvas for a large map in a box with the given attributes. read(cell, event) is called for the cell {row, column} that
// the pointer, a click, the arrow keys or Enter choose, null for none. show(map, cursor) draws a map with a marked cell.
function mapCanvas(attributes, read) {
  const canvas = element("canvas");
  const node = element("div", { class: "map", tabindex: "0", role: "application", "aria-roledescription": "map", ...attributes }, canvas);
  let map = null,
    box,
    cursor = null;

  const draw = () => {
    if (!map || !node.clientWidth) return;
    box = layOut(map, node.clientWidth, canvas.getContext("2d"));
    drawMap(canvas, map, box, cursor);
  };
  const isCell = ({ row, column }) => row >= 0 && row < map.rows && column >= 0 && column < map.columns;
  const cellAt = (event) => {
    const at = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - at.left - box.left, event.clientY - at.top - box.top];
    const cell = { row: Math.floor(y / box.cell), column: Math.floor(x / box.cell) };
    return isCell(cell) ? cell : null;
  };
  for (const type of ["pointermove", "click"]) node.addEventListener(type, (event) => box && read(cellAt(event), event));
  for (const type of ["pointerleave", "blur"]) node.addEventListener(type, (event) => read(null, event));
  node.addEventListener("keydown", (event) => {
    const step = kArrows[event.key];
    if (event.key === "Escape") read(null, event);
    if (event.key === "Enter" && cursor) read(cursor, event);
    if (!step || !map) return;
    event.preventDefault();
    const next = cursor && { row: cursor.row + step[0], column: cursor.column + step[1] };
    read(!next ? { row: 0, column: 0 } : isCell(next) ? next : cursor, event);
  });
  new ResizeObserver(draw).observe(node);
  return {
    node,
    place: () => ({ ...box, width: node.clientWidth }),
    show(next, at) {
      [map, cursor] = [next, at && isCell(at) ? at : null];
      draw();
      return cursor;
    },
  };
}

// Returns a large map with its legend and buttons that save it. describe(map, row, column) returns the text of the tooltip;
// pick(row), if given, is called for a clicked row. show(map, title) draws another map; link(other) moves the cursor of
// another map to the same cell.
function largeMap(name, describe, pick) {
  const tip = element("output", { class: "tip", "aria-live": "polite", hidden: true });
  const label = `${name}: arrow keys move between cells${pick ? ", Enter selects the query" : ""}`;
  const { node, place, show } = mapCanvas({ "aria-label": label }, (cell, event) => {
    mark(cell);
    peer?.mark(cell);
    if (pick && cell && (event.type === "click" || event.key === "Enter")) pick(cell.row);
  });
  node.append(tip);
  const below = element("div", { class: "below" });
  let map = null,
    peer = null;

  const mark = (at) => {
    if (!map) return;
    const cell = show(map, at);
    tip.hidden = !cell;
    if (!cell) return;
    tip.replaceChildren(...[describe(map, cell.row, cell.column)].flat());
    const box = place();
    const x = box.left + (cell.column + 1) * box.cell + 8;
    const fits = x + tip.offsetWidth <= box.width;
    tip.style.left = `${Math.max(0, fits ? x : Math.min(x - box.cell - tip.offsetWidth - 16, box.width - tip.offsetWidth))}px`;
    const under = box.top + (cell.row + 1) * box.cell + 8;
    tip.style.top = `${fits || under + tip.offsetHeight <= box.height ? under : box.top + cell.row * box.cell - tip.offsetHeight - 8}px`;
  };
  return {
    node: element("div", { class: "large" }, node, below),
    mark,
    link: (other) => {
      peer = other;
    },
    show: (next, title) => {
      map = next;
      tip.hidden = true;
      const picture = () => pictureOf(map, title);
      below.replaceChildren(legend(map), saveButtons(picture, `the map of ${title}`));
      show(map, null);
    },
  };
}

// Returns the content of a tooltip: the first line bold, then others, each a text or a list of elements; null for none.
const tipLines = (first, ...lines) => [
  element("b", {}, first),
  ...lines.flatMap((line) => (line === null ? [] : [element("br"), ...[line].flat()])),
];

// Returns a value with as many digits as its quantization step supports, and its error bound.
function precisely(value, step) {
  if (value === null) return "masked";
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
  return `${shorter(value, digits)} ± ${(step / 2).toPrecision(1).replace(/e-0?/, "e−")}`;
}
