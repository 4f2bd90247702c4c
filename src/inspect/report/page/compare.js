// The page of `thimble compare`: settings of a sweep, results, curves and configs. A link such as #model.heads=4 or #run=2
// selects runs; the others are drawn in gray.

const kRuns = report.runs;
const kManyRuns = 12; // more are drawn in gray, except the best
const kMetricNames = {
  accuracy: "accuracy",
  sequence_accuracy: "sequence accuracy",
  exact_match: "exact match",
};

const isShare = (metric) => metric.includes("accuracy") || metric.endsWith("exact_match");
const metricName = (metric) => {
  const [split, name] = metric.split(".");
  return name ? `${split} ${kMetricNames[name] ?? name}` : split;
};
// Returns a value of a metric as text.
const shownAs = (metric) => {
  if (isShare(metric)) return percent;
  if (metric.endsWith("loss")) return (x) => shorter(x, 5);
  return metric === "seconds" ? (x) => shorter(x, 1) : grouped;
};

const parameterText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
// The parameters with several values: [key, values], in order.
const kParameters = [...new Set(kRuns.flatMap((run) => Object.keys(run.parameters)))]
  .map((key) => [key, [...new Set(kRuns.map((run) => parameterText(run.parameters[key])))]])
  .filter(([, values]) => values.length > 1);

// Returns whether a run has what the address selects, "" for all runs.
function isSelected(index) {
  const [key, value] = [...new URLSearchParams(state.selection)][0] ?? [];
  if (key === undefined) return true;
  return key === "run" ? Number(value) === index + 1 : parameterText(kRuns[index].parameters[key]) === value;
}

const addressOf = (key, value) => `#${new URLSearchParams([[key, value]])}`;

// Returns the selection in the address of the page, if it selects a run.
function addressedSelection() {
  const text = location.hash.slice(1);
  const before = state.selection;
  state.selection = text.includes("=") ? text : "";
  const found = kRuns.some((_, index) => isSelected(index));
  const selection = found ? state.selection : "";
  state.selection = before;
  return selection;
}

// Returns a link that selects runs, marked while it does; a second click ends the selection.
function selector(key, value, ...content) {
  const link = element("a", { href: addressOf(key, value) }, ...content);
  link.addEventListener("click", (event) => {
    if (`#${state.selection}` !== link.getAttribute("href")) return;
    event.preventDefault();
    history.pushState(null, "", location.pathname);
    update({ selection: "" });
  });
  subscribe(["selection"], () => {
    if (`#${state.selection}` === link.getAttribute("href")) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
  return link;
}

const styleOf = (index) => `s${index % 8}${index % 16 > 7 ? " again" : ""}`;
const swatch = (index) => element("i", { class: `swatch ${styleOf(index)}` });
const range = (spread, show) => (spread.count > 1 ? element("small", {}, `${show(spread.min)} to ${show(spread.max)}`) : null);

// Returns the content of a cell: the median, marked if it is the best, and the range over the seeds.
function spreadCell(result, index) {
  const [spread, show] = [result.runs[index], shownAs(result.metric)];
  if (!spread) return ["–"];
  const isBest = result.best.includes(index);
  const attributes = { class: isBest ? "number best" : "number", title: `${spread.median}${isBest ? ", the best" : ""}` };
  return [element("span", attributes, show(spread.median), isBest ? " ★" : ""), range(spread, show)];
}

// Returns the table of a sweep: the last parameter across, the others down, a link for each setting.
function gridTable(result) {
  const [across, columns] = kParameters.at(-1);
  const down = kParameters.slice(0, -1).map(([key]) => key);
  const rowName = (run) => down.map((key) => `${key.split(".").at(-1)} ${parameterText(run.parameters[key])}`).join(", ");
  const rows = [...new Set(kRuns.map(rowName))];
  const cells = (row, value) =>
    kRuns.flatMap((run, index) =>
      rowName(run) === row && parameterText(run.parameters[across]) === value
        ? [element("span", { class: "cell" }, selector("run", index + 1, ...spreadCell(result, index)))]
        : [],
    );
  return plainTable(
    ["", ...columns.map((value) => `${across.split(".").at(-1)} ${value}`)],
    rows.map((row) => [row, ...columns.map((value) => cells(row, value))]),
    "overview",
  );
}

function settings() {
  if (!kParameters.length) return null;
  const host = element("div", { class: "panel" });
  const metrics = report.results.filter((result) => isShare(result.metric) || result.metric.endsWith("loss"));
  const usual = metrics.find((result) => result.metric === "test.accuracy") ?? metrics[0];
  const draw = (result) => host.replaceChildren(result ? gridTable(result) : "no results yet");
  draw(usual);
  const names = metrics.map(({ metric }) => [metric, metricName(metric)]);
  const pick = (value) => draw(metrics.find(({ metric }) => metric === value));
  const links = kParameters.flatMap(([key, values]) => [
    element("dt", {}, key),
    element("dd", {}, ...values.map((value) => selector(key, value, value))),
  ]);
  return section(
    "settings",
    "Settings",
    "A link selects the runs with that value, or one setting, in all charts and tables; a second click selects all.",
    element("dl", { class: "settings" }, links),
    element("div", { class: "choices" }, choice("median over seeds of", names, usual?.metric, pick, "metric")),
    host,
  );
}

function results() {
  if (!report.results.length) return section("results", "Results", "No run has ended yet.");
  const seeds = kRuns.some((run) => run.directories.length + run.failed > 1);
  const done = (run) => `${run.directories.length}/${run.directories.length + run.failed}`;
  const table = plainTable(
    ["run", ...(seeds ? ["seeds"] : []), ...report.results.map((result) => metricName(result.metric))],
    kRuns.map((run, index) => [
      [swatch(index), run.name],
      ...(seeds ? [done(run)] : []),
      ...report.results.map((result) => spreadCell(result, index)),
    ]),
    "results",
  );
  // Fades the rows of runs that are not selected.
  const rows = table.querySelectorAll("tbody tr");
  subscribe(["selection"], () => rows.forEach((row, i) => row.classList.toggle("faint", !isSelected(i))));
  const best = report.results.some((result) => result.best.length) ? " ★ marks the best." : "";
  const data = report.data_differs.join(", ");
  return section(
    "results",
    "Results",
    seeds ? `Medians over the seeds, with minimum and maximum.${best}` : best.trim() || null,
    data
      ? element("p", { class: "warning" }, `The runs differ in their data (${data}): their results are not on the same sequences.`)
      : null,
    element("div", { class: "panel" }, table),
  );
}

// Returns the runs that a chart names: those selected, or of many runs the best.
function namedRuns() {
  const all = kRuns.map((_, index) => index);
  if (state.selection !== "" || kRuns.length <= kManyRuns) return all.filter(isSelected);
  const best = report.results.find((result) => result.metric.startsWith("validation") && result.best.length);
  return best ? best.best : all.slice(0, 1);
}

function curves() {
  if (!report.curves.length) return null;
  const host = element("div", { class: "columns two" });
  subscribe(["selection"], () => {
    const named = namedRuns();
    host.replaceChildren(
      ...report.curves.map(({ split, metric, runs }) => {
        const order = [...runs.keys()].sort((a, b) => named.includes(a) - named.includes(b));
        return lineChart({
          title: capital(`${split} ${metric}`),
          xLabel: "step",
          height: 260,
          range: metric === "accuracy" ? [0, 1] : undefined,
          show: metric === "accuracy" ? percent : undefined,
          series: order
            .filter((index) => runs[index].length)
            .map((index) => ({
              name: kRuns[index].name,
              style: named.includes(index) ? styleOf(index) : "other",
              quiet: !named.includes(index),
              dots: split === "validation",
              points: runs[index].map((p) => [p.step, p.median]),
              band: named.includes(index) && runs[index].some((p) => p.count > 1) ? runs[index].map((p) => [p.step, p.min, p.max]) : [],
            })),
        });
      }),
    );
  });
  const about = report.has_sweep ? "Lines are medians over the seeds that have reached a step; bands reach from minimum to maximum." : null;
  return section("curves", "Curves", about, host);
}

// Returns a table of values, those that differ or all of them.
function valueTable(rows, all) {
  const shown = rows.filter((row) => all || row.differs);
  return shown.length
    ? plainTable(
        ["", ...kRuns.map((run) => run.name)],
        shown.map((row) => [row.key, ...row.values.map((value) => value || "–")]),
        "config",
      )
    : element("p", {}, "Nothing differs.");
}

function configs() {
  const host = element("div", { class: "panel" });
  const all = element("input", { type: "checkbox", id: "all", change: () => draw() });
  const draw = () => host.replaceChildren(valueTable([...report.config, ...report.records], all.checked));
  draw();
  const same = report.config.filter((row) => !row.differs).length;
  return section(
    "config",
    "Config",
    `Keys with different values; ${same} are the same in all runs. –: the key has no effect, or the value is unknown.`,
    element("label", { for: "all" }, all, " show all keys"),
    host,
  );
}

function startComparison() {
  Object.assign(state, { selection: "" });
  Object.assign(state, { selection: addressedSelection() });
  const tasks = [...new Set(report.config.find((row) => row.key === "task.name")?.values ?? [])].filter(Boolean);
  const title = pageTitle("thimble compare", tasks.join(", "));
  const sections = [settings(), results(), curves(), configs(), ...report.heads.map(matchedHeads)].filter(Boolean);
  const runs = counted(
    kRuns.reduce((sum, run) => sum + run.directories.length + run.failed, 0),
    "run",
  );
  const size = report.has_sweep ? `${counted(kRuns.length, "setting")}, ${runs}` : runs;
  document.getElementById("top").append(title, element("p", { class: "model" }, size), navigation(sections));
  document.querySelector("main").append(...sections);
  addEventListener("hashchange", () => {
    if (location.hash === "" || location.hash.includes("=")) update({ selection: addressedSelection() });
  });
}

startComparison();
