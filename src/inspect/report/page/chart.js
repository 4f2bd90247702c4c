// Line charts and bars, drawn as SVG at the available width.

const kLayout = { size: 11, left: 46, right: 22, top: 10, bottom: 34 };

// Returns about `count` round numbers from low to high.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough * 0.999);
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-6; ++k) out.push(Number((k * step).toPrecision(12)));
  return out;
}

// Returns powers of ten for a logarithmic axis of steps; step 0 has a place of its own.
const logTicks = (low, high) => [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((x) => x >= low && x <= high);

const brief = (x) => (Math.abs(x) >= 1e4 ? `${x / 1000}k` : String(x).replace("-", "−"));

// Returns the maps from numbers to pixels of a chart, and its ticks.
function scales(spec, width, height) {
  const points = spec.series.flatMap((s) => s.points).filter(([x, y]) => isNumber(x) && isNumber(y));
  const xs = points.map(([x]) => x);
  const ys = [...points.map(([, y]) => y), ...spec.series.flatMap((s) => (s.band ?? []).flatMap(([, low, high]) => [low, high]))];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const [y0, y1] = spec.range ?? [Math.min(0, ...ys), Math.max(...ys) || 1];
  const bend = spec.log ? (x) => Math.log10(1 + x) : (x) => x;
  const inner = { width: width - kLayout.left - kLayout.right, height: height - kLayout.top - kLayout.bottom };
  const x = (value) => kLayout.left + ((bend(value) - bend(x0)) / (bend(x1) - bend(x0) || 1)) * inner.width;
  const y = (value) => kLayout.top + (1 - (value - y0) / (y1 - y0 || 1)) * inner.height;
  const columns = [...new Set(xs)].sort((a, b) => a - b);
  return {
    x,
    y,
    columns,
    xTicks: spec.log ? logTicks(x0, x1) : ticks(x0, x1, Math.max(2, inner.width / 90)),
    yTicks: ticks(y0, y1, 4),
    bottom: kLayout.top + inner.height,
    right: kLayout.left + inner.width,
  };
}

function axes(spec, at) {
  const text = (x, y, anchor, ...words) => element("text", { x, y, "text-anchor": anchor }, ...words);
  return [
    at.yTicks.map((y) => element("line", { class: "rule", x1: kLayout.left, x2: at.right, y1: at.y(y), y2: at.y(y) })),
    at.yTicks.map((y) => text(kLayout.left - 6, at.y(y) + 4, "end", brief(y))),
    at.xTicks.map((x) => text(at.x(x), at.bottom + 15, "middle", brief(x))),
    text((kLayout.left + at.right) / 2, at.bottom + 30, "middle", spec.xLabel),
  ].flat();
}

// Returns the outline of a band [[x, low, high]].
function outline(band, at) {
  const corner = (x, y) => `${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`;
  const back = [...band].reverse();
  return `M${band.map(([x, low]) => corner(x, low)).join("L")}L${back.map(([x, , high]) => corner(x, high)).join("L")}Z`;
}

function lines(spec, at) {
  return spec.series.flatMap((s) => {
    const points = s.points.filter(([x, y]) => isNumber(x) && isNumber(y));
    const path = points.map(([x, y], i) => `${i ? "L" : "M"}${at.x(x).toFixed(1)} ${at.y(y).toFixed(1)}`).join("");
    const dots =
      s.dots && points.length <= 60 ? points.map(([x, y]) => element("circle", { class: s.style, cx: at.x(x), cy: at.y(y), r: 2.5 })) : [];
    return [
      s.band?.length ? element("path", { class: `area ${s.style}`, d: outline(s.band, at) }) : null,
      element("path", { class: `line ${s.style}`, d: path }),
      ...dots,
    ];
  });
}

// Returns the names of two lines, each on the far side of its line where they are furthest apart; none without room.
function lineNames(spec, at) {
  if (!spec.named || spec.series.length !== 2) return [];
  const height = (s, x) => at.y(s.points.find(([px]) => px === x)?.[1]);
  const gap = (x) => Math.abs(height(spec.series[0], x) - height(spec.series[1], x)) || 0;
  const kRoom = 80; // for a name
  const columns = at.columns.filter((x) => at.x(x) > kLayout.left + kRoom && at.x(x) < at.right - kRoom);
  const x = columns.reduce((best, column) => (gap(column) > gap(best) ? column : best), columns[0]);
  if (!(gap(x) >= kLayout.size)) return [];
  return spec.series.map((s, i) => {
    const under = height(s, x) > height(spec.series[1 - i], x);
    const falls = height(s, at.columns[0]) < height(s, at.columns.at(-1));
    return element(
      "text",
      {
        class: `name ${s.style}`,
        x: at.x(x),
        y: under ? height(s, x) + 16 : Math.max(height(s, x) - 8, kLayout.size - 2),
        "text-anchor": falls === under ? "end" : "start",
      },
      s.name,
    );
  });
}

// Returns a chart whose lines show(spec) replaces, {node, picture, show}. A spec is {xLabel, series: [{name, style,
// points: [[x, y]], band: [[x, low, high]], dots, quiet}], range, log, bands: [[from, to]], named, show, choose, now, label}: `style` is a
// class of the style sheet; `band` is shaded around the line; a quiet series is left out of the legend and of the readout; `named` puts
// the names of two series beside their lines; `show` formats a y; a click or the enter key calls `choose` with the x that is pointed
// at; `now` is read where none is; `label` takes the place of the title for those who hear it.
function liveChart(title, height = 200) {
  const caption = element("figcaption");
  const readout = element("output", { class: "readout", "aria-live": "polite" });
  const picture = element("div", { class: "picture", tabindex: "0", role: "application", "aria-roledescription": "chart" });
  let spec,
    named,
    at,
    pointed = -1;

  const valuesAt = (x) => {
    const show = spec.show ?? ((y) => shorter(y, 4));
    return named
      .map((s) => [s, s.points.find(([px]) => px === x)])
      .filter(([, found]) => found && isNumber(found[1]))
      .map(([s, found]) => `${named.length > 1 ? `${s.name} ` : ""}${show(found[1])}${found[2] ? `, ${found[2]}` : ""}`)
      .join(" · ");
  };
  const point = (index) => {
    pointed = index;
    const x = at?.columns[index];
    picture.querySelector(".pointed")?.remove();
    readout.textContent = index < 0 ? (spec.now ?? "") : `${spec.xLabel} ${grouped(x)}: ${valuesAt(x)}`;
    if (index >= 0)
      picture.firstChild.append(element("line", { class: "pointed", x1: at.x(x), x2: at.x(x), y1: kLayout.top, y2: at.bottom }));
  };
  const draw = () => {
    const width = picture.clientWidth;
    if (!width || !spec) return;
    at = scales(spec, width, height);
    const bands = (spec.bands ?? []).map(([from, to]) =>
      element("rect", {
        class: "band",
        x: at.x(from),
        y: kLayout.top,
        width: Math.max(2, at.x(to) - at.x(from)),
        height: at.bottom - kLayout.top,
      }),
    );
    picture.replaceChildren(
      element("svg", { width, height, "aria-hidden": "true" }, bands, axes(spec, at), lines(spec, at), lineNames(spec, at)),
    );
    point(pointed < at.columns.length ? pointed : -1);
  };
  picture.addEventListener("pointermove", (event) => {
    if (!at) return;
    const x = event.clientX - picture.getBoundingClientRect().left;
    const distances = at.columns.map((column) => Math.abs(at.x(column) - x));
    point(distances.indexOf(Math.min(...distances)));
  });
  const choose = () => pointed >= 0 && spec.choose?.(at.columns[pointed]);
  picture.addEventListener("click", choose);
  for (const type of ["pointerleave", "blur"]) picture.addEventListener(type, () => spec && point(-1));
  picture.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !at) return;
    event.preventDefault();
    point(pointed < 0 ? 0 : Math.min(Math.max(pointed + step, 0), at.columns.length - 1));
  });
  new ResizeObserver(draw).observe(picture);
  return {
    node: element("figure", { class: "chart" }, caption, picture, readout),
    picture,
    show(next) {
      spec = next;
      named = spec.series.filter((s) => !s.quiet);
      const keys = named.length > 1 ? named.map((s) => element("span", { class: "key" }, element("i", { class: s.style }), s.name)) : [];
      caption.replaceChildren(element("b", {}, title), ...keys);
      picture.setAttribute("aria-label", `${spec.label ?? title}: left and right arrow keys move between the points`);
      if (pointed < 0) point(-1);
      draw();
    },
  };
}

// Returns a chart of a spec with a title and, if it is not the usual one, a height.
function lineChart(spec) {
  const chart = liveChart(spec.title, spec.height);
  chart.show(spec);
  return chart.node;
}

// Named bars from a common zero, to the left for negative values. rows: [[name, value]].
function barList(rows, show) {
  const low = Math.min(0, ...rows.map(([, value]) => value ?? 0));
  const high = Math.max(0, ...rows.map(([, value]) => value ?? 0));
  const share = (x) => (100 * (x - low)) / (high - low || 1);
  return element(
    "dl",
    { class: "bars" },
    rows.flatMap(([name, value]) => {
      const bar = element("i", { class: value < 0 ? "negative" : "" });
      bar.style.left = `${share(Math.min(value, 0))}%`;
      bar.style.width = `${share(Math.max(value, 0)) - share(Math.min(value, 0))}%`;
      return [element("dt", {}, name), element("dd", {}, element("span", { class: "track" }, bar), number(value, show))];
    }),
  );
}
