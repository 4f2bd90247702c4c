// Assembles the page.

// Returns the accuracy, of the answers that can be known where the task says which.
function lead() {
  const { accuracy, knowable, labels } = report.baseline ?? {};
  if (!isNumber(accuracy)) return null;
  const on = ` (${grouped(report.sequences)} ${report.split ?? "test"} sequences)`;
  const isOwn = ["file", "text"].includes(report.task);
  const task = report.task_summary && !isOwn ? `Task: ${report.task_summary}. ` : "";
  const right = (share, ...text) => element("p", { class: "lead" }, task, element("b", {}, percent(share)), ...text, ".");
  if (!knowable) return right(accuracy, ` of the answers are right${on}`);
  const others = `; ${(100 * (1 - knowable.labels / labels)).toFixed(0)} % of all answers are not among them: ${knowable.reason}`;
  return right(knowable.accuracy, ` of the answers that can be known are right${on}`, element("span", { class: "wide" }, others));
}

// Returns a sentence for each head, or for several of which the same is to be said; a click shows the head.
function summaries() {
  const alike = new Map();
  report.heads.forEach((h, index) => {
    if (h.verdict !== "at_chance") alike.set(h.summary, [...(alike.get(h.summary) ?? []), index]);
  });
  const button = (index) => element("button", { click: () => update({ head: index }), "data-head": index }, headName(report.heads[index]));
  const rows = [...alike].map(([text, indices]) => {
    const each = indices.length > 1 ? "each " : "";
    const parts = text.split(/( \(\d+ % [^)]*\))/).map((part, i) => element("span", { class: i % 2 ? "wide" : null }, part));
    return element("li", {}, ...indices.flatMap((index) => [button(index), " "]), each, ...parts, ".");
  });
  return element("ul", { class: "summaries" }, rows);
}

function heads() {
  const e = report.examples?.[0];
  const words = (tokens) => tokens.flatMap((token) => [word(token), " "]);
  const answers = () => e.predictions.flatMap((token, i) => (e.guessed?.[i] ? ["(", word(token), ") "] : [word(token), " "]));
  const own = ownInputs ? element("p", { class: "lead" }, "Your input ", words(e.source ?? e.tokens), "→ ", answers()) : null;
  return section("heads", "What the heads do", null, own, lead(), summaries(), explorer(), choices(), mapNotes(), scoresPanel());
}

// Returns sections behind one line, which opens for a link to one of them.
function fold(title, ...sections) {
  const node = element("details", { class: "fold" }, element("summary", {}, title), sections);
  const open = () => {
    node.open ||= node.contains(document.getElementById(location.hash.slice(1)));
  };
  addEventListener("hashchange", open);
  return node;
}

// Returns the head that is shown first: of those with a label in the latest layer that has any, the one that costs most; of those
// that cost something, if none has a label.
function bestHead() {
  const cost = (h) => -(h.ablation?.zero?.accuracy_change ?? 0);
  const better = (a, b) => (b.label ? 1 : 0) - (a.label ? 1 : 0) || (a.label ? b.layer - a.layer : 0) || cost(b) - cost(a);
  const important = report.heads.filter((h) => h.verdict === "important");
  return Math.max(report.heads.indexOf(important.sort(better)[0]), 0);
}

// Returns the query whose attention is shown first: of those with an answer that can be known the one on which the head is
// surest. Without an answer at each query it is the last.
function bestQuery(head) {
  const map = attention(head);
  const queries = [...Array(map.rows).keys()];
  const e = state.source === "example" ? example() : null;
  const isKnown = (i) => !e.guessed?.[i] && (!e.targets || (e.targets[i] ?? null) !== null);
  const most = (i) => Math.max(...map.columnLabels.map((_, c) => map.at(i, c) ?? 0));
  const known = e && perPosition(e) ? queries.filter(isKnown) : [];
  return (
    known.reduce((best, i) => (best === null || most(i) > most(best) ? i : best), null) ??
    queries.at(report.model.pooling === "first" ? 0 : -1)
  );
}

function start() {
  Object.assign(state, {
    head: bestHead(),
    source: report.examples?.length ? "example" : "mean",
    ...addressedState(),
  });
  state.query = bestQuery(state.head);
  const title = pageTitle("thimble inspect", report.name);
  const make = (...makers) => makers.map((one) => one()).filter(Boolean);
  const shown = make(patching, edges, heads, headTable, training, timeline, positionLosses, circuits, checkpointSeries),
    folded = make(cumulativeAblation, jointAblation, attribution, rollout);
  shown.find((s) => s.id === "heads").append(modelLine(), navigation([...shown, ...folded]));
  document.getElementById("top").append(title, ...make(chanceWarning));
  document.querySelector("main").append(...shown, ...(folded.length ? [fold("Statistics for experts", ...folded)] : []));
  followAddress();
}

start();
