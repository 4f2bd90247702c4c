// Saves a map as an SVG or PNG file.

// Returns the map with its title and legend as rectangles [x, y, width, height, fill] and texts, in pixels.
function pictureOf(map, title) {
  const kMargin = 12,
    kHeader = 30,
    kFooter = 48,
    kRamp = 128;
  const context = element("canvas").getContext("2d");
  const box = layOut(map, 860, context);
  box.cell = Math.max(1, Math.floor(box.cell)); // no seams between rectangles
  context.font = `bold ${kFont}`;
  const width = 2 * kMargin + Math.max(box.width, context.measureText(title).width, kRamp + 110);
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
  rectangles.push(...frame(left, top, inner, tall), ...steps, ...frame(left, low, kRamp, 10));
  const texts = [
    { text: title, x: kMargin, y: 16, align: "start", chosen: true },
    ...textsOf(map, box, null).map(moved),
    ...scaleEnds(map).map((text, i) => ({ text, x: left + (i * kRamp) / 2, y: low + 19, align: "middle" })),
  ];
  if (map.causal) {
    rectangles.push([left + kRamp + 24, low, 10, 10, themeColor("masked")], ...frame(left + kRamp + 24, low, 10, 10));
    texts.push({ text: "masked key", x: left + kRamp + 40, y: low + 5, align: "start" });
  }
  return { width: Math.ceil(width), height: Math.ceil(top + tall + kFooter), rectangles, texts };
}

function svgOf({ width, height, rectangles, texts }) {
  const svg = element(
    "svg",
    { xmlns: kSvg, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": kFont.slice(5), "font-size": 11 },
    rectangles.map(([x, y, w, h, fill]) => element("rect", { x, y, width: w, height: h, fill, "shape-rendering": "crispEdges" })),
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

function pngOf({ width, height, rectangles, texts }) {
  const kDensity = 2;
  const canvas = element("canvas", { width: kDensity * width, height: kDensity * height });
  const context = canvas.getContext("2d");
  context.scale(kDensity, kDensity);
  for (const [x, y, w, h, fill] of rectangles) {
    context.fillStyle = fill;
    context.fillRect(x, y, w, h);
  }
  for (const text of texts) drawText(context, text);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function save(map, title, extension) {
  const picture = pictureOf(map, title);
  const href = URL.createObjectURL(await (extension === "svg" ? svgOf : pngOf)(picture));
  const name = `${report.task} ${title}`.replace(/[^\p{L}\p{N}]+/gu, "_");
  element("a", { href, download: `${name}.${extension}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

function saveButtons(map, title) {
  return element(
    "span",
    { class: "save" },
    ["svg", "png"].map((extension) =>
      element(
        "button",
        { title: `Save this map as ${extension.toUpperCase()}: ${title}`, click: () => save(map, title, extension) },
        `save ${extension.toUpperCase()}`,
      ),
    ),
  );
}
