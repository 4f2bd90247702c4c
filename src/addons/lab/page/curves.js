// Loss and accuracy as they develop, with the lowest loss and chance.
import { axes, element, isNumber, kLayout, lines, percent, saveButtons, scales, shorter, state, subscribe } from "lab:report";
import { chartPicture } from "./chart_picture.js";

// Returns the lines of a chart that have a name, [{name, style}].
const namesOf = ({ series, rules = [] }) => [...series, ...rules.filter(({ y }) => isNumber(y))].filter(({ name }) => name);

/** Returns a chart whose lines are replaced by show(spec); `spec` is as for lineChart of the report; its `title` is that of a saved file. */
export function liveChart(title, height) {
  const picture = element("div", { class: "picture", role: "img" });
  const readout = element("output", { class: "now number" });
  const keys = element("span", { class: "keys-of-lines" });
  let spec = null;
  let pointed = null;
  const draw = () => {
    const width = picture.clientWidth;
    if (!spec || !width) return;
    const at = scales(spec, width, height);
    const rules = (spec.rules ?? []).filter(({ y }) => isNumber(y));
    const marks = rules.map(({ y, style }) =>
      element("line", { class: `reference ${style}`, x1: kLayout.left, x2: at.right, y1: at.y(y), y2: at.y(y) }),
    );
    const moments = (spec.moments ?? []).map((x) =>
      element("line", { class: "pointed", x1: at.x(x), x2: at.x(x), y1: kLayout.top, y2: at.bottom }),
    );
    picture.replaceChildren(element("svg", { width, height, "aria-hidden": "true" }, axes(spec, at), marks, lines(spec, at), moments));
    if (pointed !== null) point(pointed);
  };
  // Shows the values at the x nearest to a place, in pixels.
  const point = (place) => {
    pointed = place;
    const at = scales(spec, picture.clientWidth, height);
    const near = at.columns.reduce((best, x) => (Math.abs(at.x(x) - place) < Math.abs(at.x(best) - place) ? x : best), at.columns[0]);
    if (near === undefined) return;
    const values = spec.series
      .filter(({ name }) => name)
      .map((s) => [s.name, s.points.find(([x]) => x === near)?.[1]])
      .filter(([, y]) => isNumber(y))
      .map(([name, y]) => `${spec.series.length > 2 ? `${name} ` : ""}${spec.show(y)}`);
    readout.textContent = `step ${near.toLocaleString("en")}: ${values.join(" · ")}`;
  };
  picture.addEventListener("pointermove", (event) => spec && point(event.clientX - picture.getBoundingClientRect().left));
  picture.addEventListener("pointerleave", () => {
    pointed = null;
    readout.textContent = spec?.now ?? "";
  });
  new ResizeObserver(draw).observe(picture);
  return {
    node: element(
      "figure",
      { class: "chart" },
      element("figcaption", {}, element("b", {}, title), readout, keys),
      picture,
      saveButtons(() => chartPicture(picture.firstChild, `${spec.title ?? title} step ${state.step}`, namesOf(spec)), `the chart ${title}`),
    ),
    show(next) {
      spec = next;
      picture.setAttribute("aria-label", `${title} by step. ${spec.now}`);
      if (pointed === null) readout.textContent = spec.now;
      keys.replaceChildren(...namesOf(spec).map((s) => element("span", { class: "key" }, element("i", { class: s.style }), s.name)));
      draw();
    },
  };
}

/** Returns both charts. */
export function curves() {
  const loss = liveChart("Loss", 170);
  const accuracy = liveChart("Accuracy", 170);
  subscribe(["curves", "model", "theme"], () => {
    const { train, validation } = state.curves;
    const series = (column) => [
      { name: "training", style: "first", points: train.points.map((p) => [p[0], p[column]]) },
      { name: "validation", style: "second", dots: true, points: validation.points.map((p) => [p[0], p[column]]) },
    ];
    const now = (column, show) => (train.last ? show(train.last[column]) : "");
    const { lowest_loss: lowest, chance } = state.model ?? {};
    const top = Math.max(0.1, ...train.points.slice(0, 50).map((p) => p[1]));
    // The axis has a width before there are points.
    const width = { style: "unseen", points: [0, Math.max(50, state.step)].map((x) => [x, 0]) };
    const spec = { xLabel: "step" };
    loss.show({
      ...spec,
      series: [...series(1), width],
      range: [0, top * 1.05],
      rules: [{ name: "lowest possible", style: "third", y: lowest }],
      show: (y) => shorter(y, 4),
      now: now(1, (y) => shorter(y, 4)),
    });
    accuracy.show({
      ...spec,
      series: [...series(2), width],
      range: [0, 1],
      rules: [{ name: "chance", style: "third", y: chance }],
      show: percent,
      now: now(2, percent),
    });
  });
  return [loss.node, accuracy.node];
}
