// Loss and accuracy as they develop, with the lowest loss and chance.
import { isNumber, liveChart, percent, saveButtons, shorter, state, subscribe } from "lab:report";
import { chartPicture } from "./chart_picture.js";

/** Returns a chart of the report with buttons that save it; the `title` of a spec is that of a saved file. */
export function savedChart(title, height) {
  const { node, picture, show } = liveChart(title, height);
  let spec = null;
  const names = () => spec.series.filter(({ quiet }) => !quiet);
  const saved = () => chartPicture(picture.firstChild, `${spec.title ?? title} step ${state.step}`, names());
  node.append(saveButtons(saved, `the chart ${title}`));
  return {
    node,
    show(next) {
      spec = next;
      show({ ...spec, label: `${title} by step. ${spec.now}` });
    },
  };
}

/** Returns a line from the first step on, at `y` where it is known; a name and a style make it one of the legend. */
export const level = (y, line = { quiet: true, style: "unseen" }) =>
  isNumber(y) ? [{ ...line, points: [0, Math.max(50, state.step)].map((x) => [x, y]) }] : [];

/** Returns both charts. */
export function curves() {
  const loss = savedChart("Loss", 170);
  const accuracy = savedChart("Accuracy", 170);
  subscribe(["curves", "model", "theme"], () => {
    const { train, validation } = state.curves;
    // The axis has a width before there are points.
    const series = (column) => [
      { name: "training", style: "first", points: train.points.map((p) => [p[0], p[column]]) },
      { name: "validation", style: "second", dots: true, points: validation.points.map((p) => [p[0], p[column]]) },
      ...level(0),
    ];
    const now = (column, show) => (train.last ? show(train.last[column]) : "");
    const { lowest_loss: lowest, chance } = state.model ?? {};
    const top = Math.max(0.1, ...train.points.slice(0, 50).map((p) => p[1]));
    const four = (y) => shorter(y, 4);
    loss.show({
      xLabel: "step",
      series: [...series(1), ...level(lowest, { name: "lowest possible", style: "third" })],
      range: [0, top * 1.05],
      show: four,
      now: now(1, four),
    });
    accuracy.show({
      xLabel: "step",
      series: [...series(2), ...level(chance, { name: "chance", style: "third" })],
      range: [0, 1],
      show: percent,
      now: now(2, percent),
    });
  });
  return [loss.node, accuracy.node];
}
