// Saves pictures as SVG or PNG files. A picture is {title, width, height, rectangles: [[x, y, width, height, fill]], texts, paths},
// in pixels; texts are as drawText takes them, and paths, which a map has none of, [{d, fill, stroke, width, dash}].

// Returns the map with its title and legend as a picture.
function pictureOf(map, title) {
  const kMargin = 12,
    kHeader = 30,
    kFooter = 48,
    kRamp = 128;
  const context = element("canvas").getContext("2d");
  const box = layOut(map, 860, context);
  box.cell = Math.max(1, Math.floor(box.cell)); // no seams between rectangles
  context.font = `bold ${kFont}`;
  const width = 2 * kMargin + Math.max(box.width, context.measureText(title).width, kRamp + (map.hasFew ? 210 : 110));
  const css = (value) => `rgb(${color(value, map.full, map.signed).join(" ")})`;
  const moved = (text) => ({ ...text, x: text.x + kMargin, y: text.y + kHeader });
  const [left, top] = [box.left + kMargin, box.top + kHeader];
  const [inner, tall] = [box.cell * map.columns, box.cell * map.rows];
  const low = top + tall + 14;
  const frame = (x, y, w, h) =>
    [
      [x, y, w, 1],
      [x, y + h - 1, w, 1],
      [x, y, 1, h],
      [x + w - 1, y, 1, h],
    ].map((r) => [...r, themeColor("frame")]);
  const steps = Array.from({ length: 64 }, (_, i) => [
    left + i * (kRamp / 64),
    low,
    kRamp / 64 + 0.5,
    10,
    css(map.full * (map.signed ? i / 31.5 - 1 : i / 63)),
  ]);
  const rectangles = [[0, 0, width, top + tall + kFooter, themeColor("panel")]];
  for (let r = 0; r < map.rows; ++r)
    for (let c = 0, end; c < map.columns; c = end) {
      const fill = (at) => (map.at(r, at) === null ? themeColor("masked") : css(map.at(r, at)));
      const same = fill(c);
      for (end = c + 1; end < map.columns && fill(end) === same;) ++end;
      rectangles.push([left + c * box.cell, top + r * box.cell, (end - c) * box.cell, box.cell, same]);
    }
  const marks = marksOf(map, left, top, box.cell, true);
  rectangles.push(...marks, ...frame(left, top, inner, tall), ...steps, ...frame(left, low, kRamp, 10));
  const texts = [
    { text: title, x: kMargin, y: 16, align: "start", chosen: true },
    ...textsOf(map, box, null).map(moved),
    ...scaleEnds(map).map((text, i) => ({ text, x: left + (i * kRamp) / 2, y: low + 19, align: "middle" })),
  ];
  const notes = [
    [map.causal || map.hasNone, "masked", map.causal ? "masked key" : "no sequence"],
    [map.hasFew, "pointer", `fewer than ${kFewSequences} sequences`],
  ].filter(([shown]) => shown);
  notes.forEach(([, name, text], i) => {
    const y = low + 16 * i;
    rectangles.push([left + kRamp + 24, y, 10, 10, themeColor(name)], ...frame(left + kRamp + 24, y, 10, 10));
    texts.push({ text, x: left + kRamp + 40, y: y + 5, align: "start" });
  });
  return { title, width: Math.ceil(width), height: Math.ceil(top + tall + kFooter), rectangles, texts, paths: [] };
}

function svgOf({ width, height, rectangles, texts, paths }) {
  const svg = element(
    "svg",
    { xmlns: kSvg, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": kFont.slice(5), "font-size": 11 },
    rectangles.map(([x, y, w, h, fill]) => element("rect", { x, y, width: w, height: h, fill, "shape-rendering": "crispEdges" })),
    paths.map(({ d, fill, stroke, width: thick, dash }) =>
      element("path", { d, fill, stroke, "stroke-width": thick, "stroke-dasharray": dash.join(" ") || null, "stroke-linejoin": "round" }),
    ),
    texts.map(({ text, x, y, align, turned, chosen }) =>
      element(
        "text",
        {
          dy: "0.35em",
          "text-anchor": align,
          transform: `translate(${x} ${y})${turned ? " rotate(-90)" : ""}`,
          fill: themeColor(chosen ? "ink" : "muted"),
          "font-weight": chosen ? "bold" : null,
        },
        text,
      ),
    ),
  );
  return new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
}

function pngOf({ width, height, rectangles, texts, paths }) {
  const kDensity = 2;
  const canvas = element("canvas", { width: kDensity * width, height: kDensity * height });
  const context = canvas.getContext("2d");
  context.scale(kDensity, kDensity);
  fillAll(context, rectangles);
  context.lineJoin = "round";
  for (const { d, fill, stroke, width: thick, dash } of paths) {
    const path = new Path2D(d);
    Object.assign(context, { fillStyle: fill, strokeStyle: stroke, lineWidth: thick });
    context.setLineDash(dash);
    if (fill !== "none") context.fill(path);
    if (stroke !== "none") context.stroke(path);
  }
  for (const text of texts) drawText(context, text);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function save(picture, extension) {
  const href = URL.createObjectURL(await (extension === "svg" ? svgOf : pngOf)(picture));
  const name = `${report.task} ${picture.title}`.replace(/[^\p{L}\p{N}]+/gu, "_");
  element("a", { href, download: `${name}.${extension}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

// Returns buttons that save what picture() returns when they are clicked; `what` names it.
function saveButtons(picture, what) {
  const button = (extension) => {
    const name = extension.toUpperCase();
    return element("button", { title: `Save ${what} as ${name}`, click: () => save(picture(), extension) }, `save ${name}`);
  };
  return element("span", { class: "save" }, button("svg"), button("png"));
}
