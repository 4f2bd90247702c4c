// The selected head: its large map, its scores, the effect of ablating it, its circuits.

function describeWeight(map, row, column) {
  const value = map.at(row, column);
  return [
    element("b", {}, map.count?.(row, column) === 0 ? "–" : precisely(value, map.step)),
    element("br"),
    map.count ? "query " : `query ${row} `,
    word(map.rowLabels[row]),
    map.count ? " → key " : ` → key ${column} `,
    word(map.columnLabels[column]),
    ...(map.count ? [element("br"), countText(map, row, column)] : []),
  ];
}

// Returns the large map of the head that `key` of the state names, "head" or "beside". A click selects the query of the
// token view.
function headMap(key, name) {
  const title = element("h3");
  const sentence = element("p", { class: "sentence" });
  const large = largeMap(name, describeWeight, (row) => update({ query: row }));
  const panel = element("div", { class: "panel" }, title, large.node, sentence);
  subscribe([key], () => {
    panel.hidden = state[key] === null;
    if (panel.hidden) return;
    const h = report.heads[state[key]];
    title.replaceChildren(`${headName(h)} `, element("span", { class: `claim ${h.verdict}` }, claim(h) === "–" ? "no label" : claim(h)));
    sentence.textContent = h.sentence ?? "";
  });
  // The panel has a width only once it is in the page.
  requestAnimationFrame(() =>
    subscribe([key, "source", "example", "query", "full", "theme"], () => {
      if (state[key] !== null)
        large.show(
          { ...attention(state[key]), chosen: state.query },
          `${headName(report.heads[state[key]])}, ${shownName(report.heads[state[key]].layer)}`,
        );
    }),
  );
  return { panel, large };
}

// Returns the grid of heads, the selected head and, if there is one, the compared head; the cursors of their maps move
// together.
function explorer() {
  const first = headMap("head", "Attention of the selected head"),
    second = headMap("beside", "Attention of the compared head");
  first.large.link(second.large);
  second.large.link(first.large);
  const node = element("div", { class: "columns explorer" }, headGrid(), first.panel, second.panel, tokenView());
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
  const panel = element(
    "div",
    { class: "panel" },
    element("h3", {}, "Scores"),
    element(
      "p",
      { class: "about" },
      "Mean attention on the target keys over the eligible queries, with the chance level (uniform attention), matched chance (what follows positions, or finds the class and not the member, reaches as well), the value on varied examples, in which position and content part, the value before training, and the highest possible one.",
    ),
    body,
  );
  return element("div", { class: "stack" }, panel, effectPanel());
}

function effects(h) {
  const rows = ["zero", "mean", "resample"]
    .filter((kind) => h.ablation?.[kind])
    .map((kind) => {
      const a = h.ablation[kind];
      const of = a.sequences < report.sequences ? ` of ${grouped(a.sequences)} sequences` : "";
      return [kind + of, changeCell(a.accuracy_change, a.accuracy_interval, points), changeCell(a.loss_change, a.interval, signed)];
    });
  return [
    plainTable(["ablation", "Δ accuracy (points)", "Δ loss"], rows),
    h.importance
      ? element(
          "p",
          {},
          "Gradient importance ",
          number(h.importance.raw, (x) => (isNumber(x) ? x.toPrecision(4) : "–")),
          ", normalized within its layer ",
          number(h.importance.normalized),
          ".",
        )
      : "",
  ];
}

function effectPanel() {
  if (!report.heads.some((h) => h.ablation)) return null;
  const body = element("div", { class: "stack" });
  subscribe(["head", "beside"], () => {
    const shown = [state.head, state.beside].filter((index) => index !== null).map((index) => report.heads[index]);
    body.replaceChildren(...shown.flatMap((h) => [shown.length > 1 ? element("h4", {}, headName(h)) : "", ...effects(h)]));
  });
  return element(
    "div",
    { class: "panel" },
    element("h3", {}, "Ablation"),
    element(
      "p",
      { class: "about" },
      "Change when the head's output is replaced by zero, by its mean, or by its value on another sequence, with 95 % CIs; those of the loss are approximate.",
    ),
    body,
  );
}

// Returns a map whose rows and columns are the vocabulary.
function tokenMatrix(title, about, axes, key) {
  const describe = (map, r, c) => [
    element("b", {}, precisely(map.at(r, c), map.step)),
    element("br"),
    `${axes[0]} `,
    word(map.rowLabels[r]),
    `, ${axes[1]} `,
    word(map.columnLabels[c]),
  ];
  const large = largeMap(title, describe);
  const panel = element("div", { class: "panel" }, element("h3", {}, title), element("p", { class: "about" }, about), large.node);
  requestAnimationFrame(() =>
    subscribe(["head", "theme"], () => {
      const packed = report.heads[state.head].circuits?.[key];
      panel.hidden = !packed;
      if (!packed) return;
      const names = report.tokens?.length === packed.shape[0] ? report.tokens : positions(packed.shape[0]);
      large.show({ ...mapOf(packed, 0, names, names, false, axes), signed: true }, `${title}, ${headName(report.heads[state.head])}`);
    }),
  );
  return panel;
}

function circuits() {
  if (!report.heads.some((h) => h.circuits?.ov_singular_values?.length)) return null;
  const body = element("div");
  const kShown = 8;
  const spectrum = (title, values) => {
    if (!values?.length) return [];
    const bars = (count) =>
      barList(
        values.slice(0, count).map((x, i) => [String(i + 1), x]),
        (x) => shorter(x),
      );
    const list = element("div", {}, bars(kShown));
    const more =
      values.length > kShown ? element("button", { click: () => list.replaceChildren(bars(values.length)) }, `all ${values.length}`) : null;
    if (more) list.append(more);
    return [element("h4", {}, title), list];
  };
  subscribe(["head"], () => {
    const c = report.heads[state.head].circuits ?? {};
    body.replaceChildren(
      element("p", {}, "OV copying score ", number(c.ov_copying, signed), ": 1 = copies the attended token, −1 = suppresses it."),
      element("p", {}, "QK reciprocity ", number(c.qk_reciprocity), ": 1 = attention is always mutual."),
      ...spectrum("Singular values of OV", c.ov_singular_values),
      ...spectrum("Singular values of QK", c.qk_singular_values),
    );
  });
  const heads = report.heads.filter((h) => h.circuits);
  const matrix = (key, ...texts) => (heads.some((h) => h.circuits[key]) ? tokenMatrix(...texts, key) : null);
  const heading = element("span");
  subscribe(["head"], () => {
    heading.textContent = `QK and OV circuits of ${headName(report.heads[state.head])}, computed from its weights alone.`;
  });
  return section(
    "circuits",
    "Circuits",
    heading,
    element(
      "div",
      { class: "columns three" },
      element("div", { class: "panel" }, element("h3", {}, "Summary"), body),
      matrix("qk_tokens", "QK in tokens", "Attention score of a query token (rows) for a key token (columns), before the softmax.", [
        "query token",
        "key token",
      ]),
      matrix("ov_tokens", "OV in tokens", "What attending to a token (rows) adds to the logit of a token (columns).", [
        "attended token",
        "logit of token",
      ]),
    ),
  );
}
