// The table of heads, sortable by any column.

// Titles and meanings of the scores by name: those of a target, then those of the shape of attention.
const scoresOf = (target) =>
  Object.fromEntries(report.score_table.filter((s) => s.target === target).map((s) => [s.name, [s.title, s.meaning]]));
const kTargets = scoresOf(true);
const kShapes = scoresOf(false);

// Returns the name of a score, with the best offset or position where it has one.
function scoreName(name, score) {
  const title = (kTargets[name] ?? kShapes[name] ?? [name])[0];
  if (!isNumber(score?.at)) return title;
  return `${title} ${name === "offset" ? signed(score.at, 0) : score.at}`;
}

// Returns the columns: name, meaning, the value to sort by, and the content of a cell.
function tableColumns() {
  const scores = ["entropy", ...Object.keys(kTargets)].filter((name) => report.heads.some((h) => isNumber(h.scores?.[name]?.value)));
  // On a phone there is room for one score and one effect.
  const most = (name) => Math.max(...report.heads.map((h) => h.scores?.[name]?.value ?? 0));
  const first = Object.keys(kTargets).sort((a, b) => most(b) - most(a))[0];
  const has = (value) => report.heads.some((h) => isNumber(value(h)));
  const change = (what, unit, key, interval, show) => ({
    name: `Δ ${what}`,
    about: `Change in ${what} when the head is zero-ablated, with ${what === "loss" ? "an approximate" : "its"} 95 % CI${unit}`,
    value: (h) => h.ablation?.zero?.[key],
    cell: (h) => changeCell(h.ablation?.zero?.[key], h.ablation?.zero?.[interval], show),
  });
  return [
    { name: "head", about: "Layer and number of the head (from 0)", value: (h) => report.heads.indexOf(h), cell: (h) => h.name },
    {
      name: "label",
      about: "The pattern of the head, where pattern and effect agree",
      value: claim,
      cell: (h) => element("button", { class: `claim ${h.verdict}`, title: h.sentence }, claim(h)),
    },
    ...scores.map((name) => ({
      name: scoreName(name),
      isWide: name !== first,
      about: (kTargets[name] ?? kShapes[name])[1],
      value: (h) => h.scores?.[name]?.value,
      cell: (h) => meter(h.scores?.[name]),
    })),
    change("accuracy", ", in points", "accuracy_change", "accuracy_interval", points),
    { ...change("loss", "", "loss_change", "interval", signed), isWide: true },
    {
      name: "gradient",
      isWide: true,
      about: "Gradient importance (grad.imp), normalized within its layer (Michel et al. 2019)",
      value: (h) => h.importance?.normalized,
      cell: (h) => number(h.importance?.normalized),
    },
  ].filter((column) => column.name === "label" || has(column.value));
}

// Returns the content of a cell for a change and its interval.
function changeCell(value, interval, show) {
  return [number(value, show), element("small", {}, interval ? `${show(interval[0])} to ${show(interval[1])}` : "")];
}

// Returns a share between 0 and 1 as number and bar, with a mark at its chance level.
function meter(score) {
  const value = score?.value;
  if (!isNumber(value)) return number(value);
  const fill = element("i");
  fill.style.width = `${100 * Math.min(Math.max(value, 0), 1)}%`;
  const chance = isNumber(score.chance) ? element("b") : null;
  if (chance) chance.style.left = `${100 * Math.min(Math.max(score.chance, 0), 1)}%`;
  return element("span", { class: "meter" }, number(value), element("span", { class: "track" }, fill, chance));
}

// Compares numbers before words; missing values come last in both directions.
function compared(a, b, direction) {
  const missing = (x) => x === null || x === undefined || x === "–";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  return direction * (isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b)));
}

// Returns the smallest effect of interest as text.
function smallestEffect() {
  const { accuracy, loss } = report.scale.smallest_effect;
  if (!isNumber(accuracy)) return "which there is not, since a constant answer is always right here";
  return `${shorter(100 * accuracy, 2)} points${isNumber(loss) ? ` or ${shorter(loss)} in capped loss` : ""}`;
}

function headTable() {
  const columns = tableColumns();
  let by = null,
    direction = 1;
  const wide = (column) => (column.isWide ? "wide" : null);
  const rows = report.heads.map((h, index) => {
    const cells = columns.map((column, c) => tableCell(c, column.cell(h), wide(column)));
    return element("tr", { "data-head": index, click: () => update({ head: index }) }, cells);
  });
  const headings = columns.map((column) => {
    const button = element("button", { title: column.about, click: () => sort(column) }, column.name);
    return element("th", { scope: "col", "aria-sort": "none", class: wide(column) }, button);
  });

  const sort = (column) => {
    // Numbers start with the largest, heads and labels with the first.
    direction = by === column ? -direction : ["head", "label"].includes(column.name) ? 1 : -1;
    by = column;
    headings.forEach((th, c) => th.setAttribute("aria-sort", columns[c] !== by ? "none" : direction > 0 ? "ascending" : "descending"));
    const order = rows.map((row, index) => [row, by.value(report.heads[index]), index]);
    order.sort((a, b) => compared(a[1], b[1], direction) || a[2] - b[2]);
    rows[0].parentNode.append(...order.map(([row]) => row));
  };
  subscribe(["head"], () => rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === state.head))));
  return section(
    "table",
    "Heads",
    `What each head attends to, and what ablating it costs (accuracy in points). Labels count effects of more than ${smallestEffect()}, corrected for the number of heads (Holm); intervals are not corrected. The mark on a bar is the chance level. Select a row to show the head above.`,
    scrollingTable("Table of heads", null, headings, rows),
  );
}
