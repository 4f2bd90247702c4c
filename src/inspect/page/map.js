// Maps: colours, small pictures, and the large map that can be read with the pointer or the arrow keys.

let palettes = {};  // of the current theme

// Colours between the stops --NAME-0 to --NAME-4 of the style sheet, linearly.
function palette(name) {
  if (palettes.theme !== state.theme) palettes = { theme: state.theme };
  palettes[name] ??= Array.from({ length: 257 }, (_, i) => {
    const style = getComputedStyle(document.documentElement);
    const stop = (k) => [1, 3, 5].map((at) => parseInt(style.getPropertyValue(`--${name}-${k}`).trim().slice(at, at + 2), 16));
    const low = Math.min(Math.floor(i / 64), 3);
    const [from, to] = [stop(low), stop(low + 1)];
    return from.map((channel, c) => Math.round(channel + (i / 64 - low) * (to[c] - channel)));
  });
  return palettes[name];
}

// Red, green and blue of a value: from 0 (the background) to `full`, or, with a sign, from -full over 0 to full.
function colour(value, full, hasSign) {
  const share = full > 0 ? Math.min(Math.max(value / full, -1), 1) : 0;
  return hasSign ? palette("signed")[Math.round(128 + 128 * share)] : palette("scale")[Math.round(256 * share)];
}

// The map with one pixel a cell. Masked cells stay transparent.
function pixels(map) {
  const canvas = element("canvas", { width: map.columns, height: map.rows });
  const image = new ImageData(map.columns, map.rows);
  for (let r = 0, at = 0; r < map.rows; ++r)
    for (let c = 0; c < map.columns; ++c, at += 4) {
      const value = map.at(r, c);
      if (value === null) continue;
      const [red, green, blue] = colour(value, map.full, map.signed);
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = 255;
    }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function hatching(context) {
  const tile = element("canvas", { width: 8, height: 8 });
  const pen = tile.getContext("2d");
  pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--hatch");
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (const at of [-8, 0, 8]) {
    pen.moveTo(at - 1, 9);
    pen.lineTo(at + 9, -1);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

// Draws the map into a box of the canvas, masked cells hatched.
function paint(context, map, x, y, width, height) {
  context.imageSmoothingEnabled = false;
  if (map.causal) {
    context.fillStyle = hatching(context);
    context.fillRect(x, y, width, height);
  }
  context.drawImage(pixels(map), x, y, width, height);
}

function thumbnail(canvas, map) {
  canvas.width = canvas.height = Math.max(128, 2 * map.rows, 2 * map.columns);
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  const cell = canvas.width / Math.max(map.rows, map.columns);
  paint(context, map, 0, 0, cell * map.columns, cell * map.rows);
}

// What the colours mean.
function legend(map) {
  const ends = map.signed ? [shorter(-map.full, 2), "0", shorter(map.full, 2)]
    : ["0", String(map.full / 2), map.full < 1 ? `≥ ${map.full}` : "1"];
  return element("div", { class: "legend" },
    element("div", {}, element("div", { class: map.signed ? "ramp signed" : "ramp" }),
      element("div", { class: "ends" }, ends.map((end) => element("span", {}, end)))),
    map.causal ? element("span", { class: "masked" }, element("i"), "masked key") : null);
}

const kFont = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

// Where the parts of a large map are, in CSS pixels, in a box of the given width.
function layOut(map, width, context) {
  context.font = kFont;
  const longest = (labels) => Math.max(...labels.map((label) => context.measureText(clipped(label)).width));
  const left = Math.ceil(longest(map.rowLabels)) + 8;
  const cell = Math.min((width - left - 1) / map.columns, 30);
  const lying = longest(map.columnLabels) + 4 <= cell;
  const top = lying ? 18 : Math.ceil(longest(map.columnLabels)) + 8;
  return { left, top, cell, lying, width: left + cell * map.columns + 1, height: top + cell * map.rows + 1 };
}

// Labels beside rows and above columns: as many as there is room for, and those of the chosen cell.
function drawLabels(context, map, box, cursor) {
  const every = Math.ceil(12 / box.cell);
  const style = getComputedStyle(document.documentElement);
  const chosen = (i, at) => cursor && i === at;
  const shown = (i, at) => chosen(i, at) || (i % every === 0 && !(cursor && Math.abs(i - at) * box.cell < 12));
  const ink = (i, at) => style.getPropertyValue(chosen(i, at) ? "--ink" : "--muted");
  const weight = (i, at) => (chosen(i, at) ? "bold " : "") + kFont;
  context.textBaseline = "middle";
  for (let r = 0; r < map.rows; ++r) {
    if (!shown(r, cursor?.row)) continue;
    context.textAlign = "right";
    context.font = weight(r, cursor?.row);
    context.fillStyle = ink(r, cursor?.row);
    context.fillText(clipped(map.rowLabels[r]), box.left - 5, box.top + (r + 0.5) * box.cell);
  }
  for (let c = 0; c < map.columns; ++c) {
    if (!shown(c, cursor?.column)) continue;
    context.save();
    context.translate(box.left + (c + 0.5) * box.cell, box.top - (box.lying ? 9 : 5));
    if (!box.lying) context.rotate(-Math.PI / 2);
    context.textAlign = box.lying ? "center" : "left";
    context.font = weight(c, cursor?.column);
    context.fillStyle = ink(c, cursor?.column);
    context.fillText(clipped(map.columnLabels[c]), 0, 0);
    context.restore();
  }
}

function drawMap(canvas, map, box, cursor) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * density);
  canvas.height = Math.round(box.height * density);
  canvas.style.width = `${box.width}px`;
  canvas.style.height = `${box.height}px`;
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  context.scale(density, density);
  const [width, height] = [box.cell * map.columns, box.cell * map.rows];
  paint(context, map, box.left, box.top, width, height);
  context.strokeStyle = style.getPropertyValue("--frame");
  context.strokeRect(box.left, box.top, width, height);
  drawLabels(context, map, box, cursor);
  if (!cursor) return;
  context.strokeStyle = style.getPropertyValue("--pointer");
  context.lineWidth = 2;
  context.strokeRect(box.left + cursor.column * box.cell, box.top + cursor.row * box.cell, box.cell, box.cell);
}

// A large map. describe(row, column) is what the pointer says; pick(row), if given, is called for a clicked row.
// show(map) draws another one.
function largeMap(name, describe, pick) {
  const canvas = element("canvas");
  const tip = element("output", { class: "tip", "aria-live": "polite", hidden: true });
  const node = element("div", { class: "map", tabindex: "0", role: "application", "aria-roledescription": "map",
    "aria-label": `${name}: arrow keys go through the cells${pick ? ", Enter chooses the query" : ""}` }, canvas, tip);
  let map, box, cursor = null;

  const draw = () => {
    box = layOut(map, node.clientWidth, canvas.getContext("2d"));
    drawMap(canvas, map, box, cursor);
  };
  const point = (row, column) => {
    cursor = row >= 0 && row < map.rows && column >= 0 && column < map.columns ? { row, column } : null;
    drawMap(canvas, map, box, cursor);
    tip.hidden = !cursor;
    if (!cursor) return;
    tip.replaceChildren(...[describe(map, row, column)].flat());
    const x = box.left + (column + 1) * box.cell + 8;
    const fits = x + tip.offsetWidth <= node.clientWidth;
    tip.style.left = `${Math.max(0, fits ? x : Math.min(x - box.cell - tip.offsetWidth - 16, node.clientWidth - tip.offsetWidth))}px`;
    const below = box.top + (row + 1) * box.cell + 8;
    tip.style.top = `${fits || below + tip.offsetHeight <= box.height ? below : box.top + row * box.cell - tip.offsetHeight - 8}px`;
  };
  const under = (event) => {
    const at = canvas.getBoundingClientRect();
    return [Math.floor((event.clientY - at.top - box.top) / box.cell), Math.floor((event.clientX - at.left - box.left) / box.cell)];
  };
  node.addEventListener("pointermove", (event) => point(...under(event)));
  node.addEventListener("pointerleave", () => point(-1, -1));
  node.addEventListener("blur", () => point(-1, -1));
  node.addEventListener("click", (event) => {
    point(...under(event));
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
  return { node, show: (next) => { map = next; cursor = null; tip.hidden = true; draw(); } };
}

// A value with the digits that its step gives, and how far it may be off.
function precisely(value, step) {
  if (value === null) return "masked";
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step))));
  return `${shorter(value, digits)} ± ${(step / 2).toPrecision(1).replace(/e-0?/, "e−")}`;
}
