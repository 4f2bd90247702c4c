// The section on the checkpoints of a run: a slider over them, the attention of every head there, and scores over time.

const kSeriesLines = 3; // scores in the chart, those that became largest
const seriesStep = () => report.series.steps[state.checkpoint];

// Returns the map of a head at the selected checkpoint.
function seriesMap({ layer, head }) {
  const { queries, keys, causal } = attentionLayer(layer);
  const e = report.series.examples[state.checkpointExample];
  return mapOf(seriesStep().attention[state.checkpointExample][layer], head, e[queries], e[keys], causal);
}

// Returns the tiles of all heads; a click selects the head.
function seriesTiles() {
  const { tiles, grid } = reportTiles(
    (h, index) => ({ "aria-label": headName(h), "data-series-head": index }),
    (h) => element("b", {}, shortName(h)),
    (index) => update({ head: index }),
  );
  subscribe(["checkpoint", "checkpointExample", "full", "theme"], () => tiles.forEach(({ h, canvas }) => thumbnail(canvas, seriesMap(h))));
  return panel("All heads", grid);
}

// Returns the chart of the largest scores of the selected head, with the selected checkpoint marked.
function seriesChart() {
  const host = element("div");
  const steps = report.series.steps;
  subscribe(["head", "checkpoint"], () => {
    const h = report.heads[state.head];
    const largest = (name) => Math.max(...steps.map((s) => s.heads[state.head][name] ?? 0));
    const names = Object.keys(kTargets)
      .filter((name) => largest(name) > 0)
      .sort((a, b) => largest(b) - largest(a))
      .slice(0, kSeriesLines);
    host.replaceChildren(
      lineChart({
        title: `Scores of ${headName(h)}, ${grouped(report.series.sequences)} test sequences`,
        xLabel: "step",
        log: true,
        range: [0, 1],
        bands: [[seriesStep().step, seriesStep().step]],
        series: names.map((name, i) => ({
          name: scoreName(name),
          style: ["first", "second", "third"][i],
          dots: true,
          points: steps.map((s) => [s.step, s.heads[state.head][name]]),
        })),
      }),
    );
  });
  return host;
}

function checkpointSeries() {
  const series = report.series;
  if (!series || series.steps.length < 2) return null;
  const last = series.steps.length - 1;
  const show = (place) => {
    const { step, loss } = series.steps[place];
    return [step ? `step ${grouped(step)}` : "step 0, before training", `: loss ${shorter(loss, 4)}`];
  };
  const [range, shown] = slider("checkpoint", "checkpoint", last, show);
  const step = (by) => update({ checkpoint: Math.min(Math.max(state.checkpoint + by, 0), last) });
  const names = series.examples.map((_, i) => [i, `${i + 1} of ${series.examples.length}`]);
  const list = choice("example", names, 0, (value) => update({ checkpointExample: Number(value) }), "checkpoint example");
  const title = element("h3");
  const large = largeMap("Attention at the checkpoint", describeWeight);
  subscribe(["head", "checkpoint", "checkpointExample", "full", "theme"], () => {
    const h = report.heads[state.head];
    title.textContent = `${headName(h)} at step ${grouped(seriesStep().step)}`;
    large.show(seriesMap(h), `${headName(h)}, step ${seriesStep().step}`);
  });
  const left = series.checkpoints - series.steps.length;
  const map = element("div", { class: "panel" }, title, large.node);
  const steps = element("span", { class: "stepper" }, stepButtons("checkpoint", step));
  return section(
    "checkpoints",
    "Checkpoints",
    `The attention of every head at ${series.steps.length} checkpoints of the run, from its initialization on.${left ? ` ${left} more are left out for the size of the page.` : ""}`,
    element("div", { class: "choices" }, range, steps, shown, series.examples.length > 1 ? list : null),
    element("div", { class: "columns two" }, seriesTiles(), element("div", { class: "stack" }, map, seriesChart())),
  );
}
