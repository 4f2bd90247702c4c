// The selected head: its large map, its scores, the effect of ablating it, its circuits.

function describeWeight(map, row, column) {
  const [r, c] = map.count ? ["", ""] : [`${row} `, `${column} `]; // of a mean the labels are the positions
  const cell = [`${map.axes[0]} ${r}`, word(map.rowLabels[row]), ` → ${map.axes[1]} ${c}`, word(map.columnLabels[column])];
  const value = map.count?.(row, column) === 0 ? "–" : precisely(map.at(row, column), map.step);
  return tipLines(value, cell, countText(map, row, column) ?? null);
}

// Returns the large map of the head that `key` of the state names, "head" or "beside". A click selects the query of the
// token view.
function headMap(key, name) {
  const title = element("h3");
  const sentence = element("p", { class: "sentence" });
  const large = largeMap(name, describeWeight, (row) => update({ query: row }));
  const node = element("div", { class: "panel" }, title, large.node, sentence);
  subscribe([key, "source", "example", "byValues", "query", "full", "theme"], () => {
    node.hidden = state[key] === null;
    if (node.hidden) return;
    const h = report.heads[state[key]];
    title.replaceChildren(`${headName(h)} `, element("span", { class: `claim ${h.verdict}` }, claim(h) === "–" ? "no label" : claim(h)));
    const tests = (h.hypotheses ?? []).map((one) => `Hypothesis: ${one.answer}: ${one.answer === "no" ? one.name : one.sentence}`);
    sentence.replaceChildren(h.sentence ?? "", ...tests.map((test) => element("span", { class: "hypothesis" }, test)));
    const shown = isMean() ? meanName(h.layer) : exampleName(state.example) + (isWeighted() ? ", weighted by values" : "");
    large.show({ ...attention(state[key]), chosen: state.query }, `${headName(h)}, ${shown}`);
  });
  return { node, large };
}

// Returns the grid of heads, the selected head and, if there is one, the compared head; the cursors of their maps move
// together.
function explorer() {
  const first = headMap("head", "Attention of the selected head"),
    second = headMap("beside", "Attention of the compared head");
  first.large.link(second.large);
  second.large.link(first.large);
  const node = element("div", { class: "columns explorer" }, headGrid(), first.node, second.node, tokenView());
  subscribe(["beside"], () => node.classList.toggle("pair", state.beside !== null));
  return node;
}

// Returns the row of a score or of a kind of task target, with `compared` also matched chance and the value on varied
// examples.
function scoreRow(name, about, score, compared, isKind = false) {
  const inShare = !name.endsWith("distance");
  const varied = number(score.varied?.value);
  if (score.varied) varied.title += `, matched chance ${score.varied.matched}`;
  return [
    element("span", { class: isKind ? "kind" : null, title: about }, name),
    inShare ? meter(score) : number(score.value),
    number(score.chance),
    ...(compared ? [number(score.matched ?? score.chance), varied] : []),
    number(score.at_init),
    number(score.attainable),
    grouped(score.eligible),
  ];
}

function scoreRows(h, names, compared) {
  return Object.entries(names)
    .filter(([name]) => h.scores?.[name])
    .flatMap(([name, [, about]]) => {
      const score = h.scores[name];
      const kinds = Object.entries(score.kinds ?? {}).map(([kind, one]) => scoreRow(kind, about, one, compared, true));
      return [scoreRow(scoreName(name, score), about, score, compared), ...kinds];
    });
}

function scoresPanel() {
  const body = element("div", { class: "columns uneven" });
  subscribe(["head"], () => {
    const h = report.heads[state.head];
    const rest = ["before training", "highest possible", "queries"];
    body.replaceChildren(
      plainTable(["target", "value", "chance", "matched", "varied", ...rest], scoreRows(h, kTargets, true), "scores"),
      plainTable(["shape of attention", "value", "chance", ...rest], scoreRows(h, kShapes, false), "scores"),
    );
  });
  const about = note(
    "Mean attention on the target keys over the eligible queries, with the chance level (uniform attention), matched chance (what follows positions, or finds the class and not the member, reaches as well), the value on varied examples, in which position and content part, the value before training, and the highest possible one.",
  );
  return element("div", { class: "stack" }, panel("Scores", about, body), effectPanel());
}

function effects(h) {
  const rows = ["zero", "mean", "resample"]
    .filter((kind) => h.ablation?.[kind])
    .map((kind) => {
      const a = h.ablation[kind];
      const of = a.sequences < report.sequences ? ` of ${grouped(a.sequences)} sequences` : "";
      return [kind + of, changeCell(a.accuracy_change, a.accuracy_interval, points), changeCell(a.loss_change, a.interval, signed)];
    });
  const table = plainTable(["ablation", "Δ accuracy (points)", "Δ loss"], rows);
  if (!h.importance) return [table];
  const raw = number(h.importance.raw, (x) => (isNumber(x) ? x.toPrecision(4) : "–"));
  const normalized = number(h.importance.normalized);
  return [table, element("p", {}, "Gradient importance ", raw, ", normalized within its layer ", normalized, ".")];
}

function effectPanel() {
  if (!report.heads.some((h) => h.ablation)) return null;
  const body = element("div", { class: "stack" });
  subscribe(["head", "beside"], () => {
    const shown = [state.head, state.beside].filter((index) => index !== null).map((index) => report.heads[index]);
    body.replaceChildren(...shown.flatMap((h) => [shown.length > 1 ? element("h4", {}, headName(h)) : "", ...effects(h)]));
  });
  const about = note(
    "Change when the head's output is replaced by zero, by its mean, or by its value on another sequence, with 95 % CIs; those of the loss are approximate.",
  );
  return panel("Ablation", about, body);
}

// Returns a map whose rows and columns are the vocabulary.
function tokenMatrix(title, about, axes, key) {
  const describe = (map, r, c) =>
    tipLines(precisely(map.at(r, c), map.step), [`${axes[0]} `, word(map.rowLabels[r]), `, ${axes[1]} `, word(map.columnLabels[c])]);
  const large = largeMap(title, describe);
  const node = panel(title, note(about), large.node);
  subscribe(["head", "theme"], () => {
    const packed = report.heads[state.head].circuits?.[key];
    node.hidden = !packed;
    if (!packed) return;
    const names = report.tokens?.length === packed.shape[0] ? report.tokens : positions(packed.shape[0]);
    large.show({ ...mapOf(packed, 0, names, names, false, axes), signed: true }, `${title}, ${headName(report.heads[state.head])}`);
  });
  return node;
}

function circuits() {
  if (!report.heads.some((h) => h.circuits?.ov_singular_values?.length)) return null;
  const body = element("div");
  const heading = element("span");
  const kShown = 8;
  const spectrum = (title, values) => {
    if (!values?.length) return [];
    const rows = values.map((x, i) => [String(i + 1), x]);
    const list = element("div", {}, barList(rows.slice(0, kShown), shorter));
    const all = element("button", { click: () => list.replaceChildren(barList(rows, shorter)) }, `all ${values.length}`);
    if (values.length > kShown) list.append(all);
    return [element("h4", {}, title), list];
  };
  subscribe(["head"], () => {
    const c = report.heads[state.head].circuits ?? {};
    heading.textContent = `QK and OV circuits of ${headName(report.heads[state.head])}, computed from its weights alone.`;
    body.replaceChildren(
      element("p", {}, "OV copying score ", number(c.ov_copying, signed), ": 1 = copies the attended token, −1 = suppresses it."),
      element("p", {}, "QK reciprocity ", number(c.qk_reciprocity), ": 1 = attention is always mutual."),
      ...spectrum("Singular values of OV", c.ov_singular_values),
      ...spectrum("Singular values of QK", c.qk_singular_values),
    );
  });
  const matrix = (key, axes, ...texts) => (report.heads.some((h) => h.circuits?.[key]) ? tokenMatrix(...texts, axes, key) : null);
  const [qk, ov] = [
    ["QK in tokens", "Attention score of a query token (rows) for a key token (columns), before the softmax."],
    ["OV in tokens", "What attending to a token (rows) adds to the logit of a token (columns)."],
  ];
  const maps = [matrix("qk_tokens", ["query token", "key token"], ...qk), matrix("ov_tokens", ["attended token", "logit of token"], ...ov)];
  return section("circuits", "Circuits", heading, element("div", { class: "columns three" }, panel("Summary", body), ...maps));
}
