// The table of heads, sortable by any column.

// Names and meanings of scores: what a head looks for, then how its attention is shaped.
const kTargets = {
  previous_token: ["previous token", "weight on the token before"],
  next_token: ["next token", "weight on the token after"],
  mirror: ["mirror", "weight on the position as far from the end as the query is from the start"],
  offset: ["offset", "weight on the key at the best fixed distance"],
  same_token: ["same token", "weight on other places with the same token"],
  duplicate_token: ["duplicate token", "weight on earlier places with the same token"],
  induction: ["induction", "weight on what followed the same token before"],
  absolute_position: ["fixed position", "weight on the best fixed position"],
  task_target: ["task target", "weight on the keys that the task names as relevant"],
};
const kShapes = {
  entropy: ["entropy", "0 when all weight is on one key, 1 when it is spread evenly"],
  distance: ["distance", "mean distance of query and key, in tokens"],
  signed_distance: ["signed distance", "mean of key minus query position, in tokens"],
  self: ["self", "weight on the query's own position"],
  first: ["first", "weight on position 0"],
  special: ["special tokens", "weight on tokens that only mark something"],
  positional_share: ["positional share", "1 when attention ignores what the tokens are, 0 when it depends on nothing else"],
};

// With the distance or position that a score reports as best.
function scoreName(name, score) {
  const title = (kTargets[name] ?? kShapes[name] ?? [name])[0];
  if (!isNumber(score?.at)) return title;
  return `${title} ${name === "offset" ? signed(score.at, 0) : score.at}`;
}

// Columns: name, what it means, the value by which it sorts, and how a cell shows it.
function tableColumns() {
  const scores = ["entropy", ...Object.keys(kTargets)].filter((name) => report.heads.some((h) => isNumber(h.scores?.[name]?.value)));
  const has = (value) => report.heads.some((h) => isNumber(value(h)));
  const range = (interval) => (interval ? `${signed(interval[0])} to ${signed(interval[1])}` : "");
  const change = (what, key, interval) => ({
    name: `${what} without`,
    about: `Change of ${what} when the head's output is set to zero, with its 95 % interval`,
    value: (h) => h.ablation?.zero?.[key],
    cell: (h) => [number(h.ablation?.zero?.[key], signed), element("small", {}, range(h.ablation?.zero?.[interval]))],
  });
  return [
    {
      name: "layer",
      about: "Layer of the head, from 0",
      value: (h) => h.layer,
      cell: (h) => (report.attentions ? layerName(h.layer) : String(h.layer)),
    },
    { name: "head", about: "Head in its layer, from 0", value: (h) => h.head, cell: (h) => String(h.head) },
    {
      name: "label",
      about: "What the head is, where pattern and effect agree",
      value: claim,
      cell: (h) => element("button", { class: `claim ${h.verdict}`, title: h.sentence }, claim(h)),
    },
    ...scores.map((name) => ({
      name: scoreName(name),
      about: (kTargets[name] ?? kShapes[name])[1],
      value: (h) => h.scores?.[name]?.value,
      cell: (h) => meter(h.scores?.[name]),
    })),
    change("accuracy", "accuracy_change", "accuracy_interval"),
    change("loss", "loss_change", "interval"),
    {
      name: "importance",
      about: "Gradient importance, normalized per layer (Michel et al. 2019)",
      value: (h) => h.importance?.normalized,
      cell: (h) => number(h.importance?.normalized),
    },
  ].filter((column) => column.name === "label" || has(column.value));
}

// A share between 0 and 1 as number and bar, with a mark at its chance value.
function meter(score) {
  const value = score?.value;
  if (!isNumber(value)) return number(value);
  const fill = element("i");
  fill.style.width = `${100 * Math.min(Math.max(value, 0), 1)}%`;
  const chance = isNumber(score.chance) ? element("b") : null;
  if (chance) chance.style.left = `${100 * Math.min(Math.max(score.chance, 0), 1)}%`;
  return element("span", { class: "meter" }, number(value), element("span", { class: "track" }, fill, chance));
}

// Numbers before words, what is missing last whichever way it goes.
function compared(a, b, direction) {
  const missing = (x) => x === null || x === undefined || x === "–";
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  return direction * (isNumber(a) && isNumber(b) ? a - b : String(a).localeCompare(String(b)));
}

function headTable() {
  const columns = tableColumns();
  let by = null,
    direction = 1;
  const body = element("tbody");
  const rows = report.heads.map((h, index) =>
    element(
      "tr",
      { "data-head": index, click: () => update({ head: index }) },
      columns.map((column, c) => element(c === 1 ? "th" : "td", c === 1 ? { scope: "row" } : {}, ...[column.cell(h)].flat())),
    ),
  );
  const headings = columns.map((column) =>
    element(
      "th",
      { scope: "col", "aria-sort": "none" },
      element("button", { title: column.about, click: () => sort(column) }, column.name),
    ),
  );

  const sort = (column) => {
    // Numbers are most telling from the largest down; places and names from the first on.
    direction = by === column ? -direction : ["layer", "head", "label"].includes(column.name) ? 1 : -1;
    by = column;
    headings.forEach((th, c) => th.setAttribute("aria-sort", columns[c] !== by ? "none" : direction > 0 ? "ascending" : "descending"));
    const order = rows.map((row, index) => [row, by.value(report.heads[index]), index]);
    order.sort((a, b) => compared(a[1], b[1], direction) || a[2] - b[2]);
    body.replaceChildren(...order.map(([row]) => row));
  };
  body.append(...rows);
  watch(["head"], () => rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === state.head))));
  return section(
    "table",
    "Heads",
    "What each head looks for, and what is lost without it. A mark on a bar is chance. Choose a row to see the head.",
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of heads" },
      element("table", {}, element("thead", {}, element("tr", {}, headings)), body),
    ),
  );
}
