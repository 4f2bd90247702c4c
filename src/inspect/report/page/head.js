// The chosen head: its map enlarged, its scores, what removing it costs, its circuits.

function describeWeight(map, row, column) {
  const value = map.at(row, column);
  return [
    element("b", {}, precisely(value, map.step)),
    element("br"),
    `query ${row} `,
    word(map.rowLabels[row]),
    ` → key ${column} `,
    word(map.columnLabels[column]),
  ];
}

// The enlarged map of the head that `key` of the state names, "head" or "beside". A click chooses the query of the token
// view.
function headMap(key, name) {
  const title = element("h3");
  const sentence = element("p", { class: "sentence" });
  const large = largeMap(name, describeWeight, (row) => update({ query: row }));
  const panel = element("div", { class: "panel" }, title, sentence, large.node);
  watch([key], () => {
    panel.hidden = state[key] === null;
    if (panel.hidden) return;
    const h = report.heads[state[key]];
    title.replaceChildren(
      `${capital(headName(h))} `,
      element("span", { class: `claim ${h.verdict}` }, claim(h) === "–" ? "no claim" : claim(h)),
    );
    sentence.textContent = h.sentence ?? "";
  });
  // After the panel is in the page and has a width.
  requestAnimationFrame(() =>
    watch([key, "source", "example", "full", "theme"], () => {
      if (state[key] !== null) large.show(attention(state[key]), `${headName(report.heads[state[key]])}, ${shownName()}`);
    }),
  );
  return { panel, large };
}

// The grid of heads, the chosen head and, if there is one, the head beside it; pointing at a cell of one map points at the
// same cell of the other.
function explorer() {
  const first = headMap("head", "Attention of the chosen head"),
    second = headMap("beside", "The head beside it");
  first.large.link(second.large);
  second.large.link(first.large);
  const node = element("div", { class: "columns explorer" }, headGrid(), first.panel, second.panel, effectPanel());
  watch(["beside"], () => node.classList.toggle("pair", state.beside !== null));
  return node;
}

function plainTable(headings, rows, className = "") {
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": headings[0] },
    element(
      "table",
      { class: className },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          headings.map((text) => element("th", { scope: "col" }, text)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((cells) =>
          element(
            "tr",
            {},
            cells.map((cell, c) => element(c ? "td" : "th", c ? {} : { scope: "row" }, ...[cell].flat())),
          ),
        ),
      ),
    ),
  );
}

function scoreRows(h, names) {
  return Object.entries(names)
    .filter(([name]) => h.scores?.[name])
    .map(([name, [, about]]) => {
      const score = h.scores[name];
      const inShare = !name.endsWith("distance");
      return [
        element("span", { title: about }, scoreName(name, score)),
        inShare ? meter(score) : number(score.value),
        number(score.chance),
        number(score.at_init),
        number(score.attainable),
        grouped(score.eligible),
      ];
    });
}

function scoresPanel() {
  const body = element("div", { class: "columns two" });
  watch(["head"], () => {
    const h = report.heads[state.head];
    const rest = ["value", "chance", "at start", "attainable", "|E|"];
    body.replaceChildren(
      plainTable(["looks for", ...rest], scoreRows(h, kTargets), "scores"),
      plainTable(["shape of attention", ...rest], scoreRows(h, kShapes), "scores"),
    );
  });
  return element(
    "div",
    { class: "panel" },
    element("h3", {}, "Scores"),
    element(
      "p",
      { class: "about" },
      "Mean weight on the target keys over |E| eligible queries; beside it uniform attention, the same head before training, and the most there could be.",
    ),
    body,
  );
}

function effects(h) {
  const names = { zero: "zero", mean: "its mean", resample: "another input's" };
  const interval = (pair) => element("small", {}, pair ? `${signed(pair[0])} to ${signed(pair[1])}` : "");
  const rows = Object.entries(names)
    .filter(([kind]) => h.ablation?.[kind])
    .map(([kind, name]) => {
      const a = h.ablation[kind];
      return [
        name,
        [number(a.accuracy_change, signed), interval(a.accuracy_interval)],
        [number(a.loss_change, signed), interval(a.interval)],
      ];
    });
  return [
    plainTable(["output replaced by", "accuracy", "loss"], rows),
    h.importance
      ? element(
          "p",
          {},
          "Gradient importance ",
          number(h.importance.raw, (x) => (isNumber(x) ? x.toPrecision(4) : "–")),
          ", normalized in its layer ",
          number(h.importance.normalized),
          ".",
        )
      : "",
  ];
}

function effectPanel() {
  if (!report.heads.some((h) => h.ablation)) return null;
  const title = element("h3");
  const body = element("div", { class: "stack" });
  watch(["head", "beside"], () => {
    const shown = [state.head, state.beside].filter((index) => index !== null).map((index) => report.heads[index]);
    title.textContent = shown.length > 1 ? "Without one of these heads" : "Without this head";
    body.replaceChildren(...shown.flatMap((h) => [shown.length > 1 ? element("h4", {}, capital(headName(h))) : "", ...effects(h)]));
  });
  return element(
    "div",
    { class: "panel" },
    title,
    element("p", { class: "about" }, "Change when the head's output is replaced, with bootstrap 95 % intervals."),
    body,
  );
}

// A token-space matrix: rows and columns are the vocabulary.
function tokenMatrix(title, about, axes, key) {
  const describe = (map, r, c) => [
    element("b", {}, precisely(map.at(r, c), map.step)),
    element("br"),
    word(map.rowLabels[r]),
    " → ",
    word(map.columnLabels[c]),
  ];
  const large = largeMap(title, describe);
  const panel = element("div", { class: "panel" }, element("h3", {}, title), element("p", { class: "about" }, about), large.node);
  requestAnimationFrame(() =>
    watch(["head", "theme"], () => {
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
  const spectrum = (title, values) =>
    values?.length
      ? [
          element("h4", {}, title),
          barList(
            values.map((x, i) => [String(i + 1), x]),
            (x) => shorter(x),
          ),
        ]
      : [];
  watch(["head"], () => {
    const c = report.heads[state.head].circuits ?? {};
    body.replaceChildren(
      element("p", {}, "OV copying ", number(c.ov_copying, signed), ": from −1, writes the opposite of what it reads, to 1, copies it."),
      element("p", {}, "QK reciprocity ", number(c.qk_reciprocity), ": 1 when attention is always mutual."),
      ...spectrum("Singular values of OV", c.ov_singular_values),
      ...spectrum("Singular values of QK", c.qk_singular_values),
    );
  });
  const heads = report.heads.filter((h) => h.circuits);
  const matrix = (key, ...texts) => (heads.some((h) => h.circuits[key]) ? tokenMatrix(...texts, key) : null);
  const heading = element("span");
  watch(["head"], () => {
    heading.textContent = `Of ${headName(report.heads[state.head])}, from its weights alone.`;
  });
  return section(
    "circuits",
    "Circuits",
    heading,
    element(
      "div",
      { class: "columns three" },
      element("div", { class: "panel" }, element("h3", {}, "In numbers"), body),
      matrix("qk_tokens", "QK in tokens", "How much a query token (down) asks for a key token (right).", ["query token", "key token"]),
      matrix("ov_tokens", "OV in tokens", "What attending to a token (down) adds to the logit of a token (right).", [
        "attended token",
        "logit of token",
      ]),
    ),
  );
}
