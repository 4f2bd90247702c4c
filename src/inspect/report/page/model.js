// What belongs to the whole model: facts, training, heads over time, removing many heads, attribution, rollout.

function facts() {
  const m = report.model ?? {};
  const b = report.baseline ?? {};
  const big = (name, value, exact) =>
    value === null ? null : element("div", {}, element("dt", {}, name), element("dd", { title: exact ?? null }, value));
  const measured = (name, x, show) => (isNumber(x) ? big(name, show(x), String(x)) : null);
  const words =
    m.kind === "recurrent"
      ? ["recurrent encoder and decoder", `width ${m.d_model}`, `${m.score} score`]
      : [
          `${m.layers} layer${m.layers === 1 ? "" : "s"}`,
          `${m.heads} head${m.heads === 1 ? "" : "s"}`,
          `width ${m.d_model}`,
          `${m.norm}-norm`,
          ...(report.attentions
            ? ["encoder and decoder"]
            : [m.mask === "none" ? "sees both ways" : `${m.mask} mask`, `one answer per ${m.output}`]),
        ];
  return [
    element(
      "p",
      { class: "model" },
      words.map((text) => element("span", {}, text)),
      report.weights_hash ? element("span", {}, "weights ", element("code", {}, report.weights_hash)) : null,
    ),
    element(
      "dl",
      { class: "facts" },
      measured("accuracy", b.accuracy, percent),
      measured("sequences all right", b.sequence_accuracy, percent),
      measured("loss", b.loss, (x) => shorter(x, 4)),
      big(`${report.split ?? ""} sequences`.trim(), grouped(report.sequences)),
      report.source_length ? big("tokens of a source", grouped(report.source_length)) : null,
      big("tokens each", grouped(report.length)),
    ),
  ];
}

const kLooks = { train: "first", validation: "second", test: "third" };

function training() {
  const curves = report.curves ?? [];
  if (!curves.length) return null;
  const splits = [...new Set(curves.map((c) => c.split))];
  const steps = curves.map((c) => c.step);
  const chart = (title, key, [name, level], more) => {
    const series = splits
      .map((split) => ({
        name: split,
        look: kLooks[split] ?? "third",
        dots: true,
        points: curves.filter((c) => c.split === split && isNumber(c[key])).map((c) => [c.step, c[key]]),
      }))
      .filter((s) => s.points.length);
    if (series.length && isNumber(level))
      series.push({
        name,
        look: "third",
        points: [
          [Math.min(...steps), level],
          [Math.max(...steps), level],
        ],
      });
    return series.length ? lineChart({ title, xLabel: "step", series, ...more }) : null;
  };
  return section(
    "training",
    "Training",
    null,
    element(
      "div",
      { class: "columns two" },
      chart("Loss", "loss", ["lowest possible", report.lowest_possible_loss], {}),
      chart("Accuracy", "accuracy", ["chance", report.chance], { range: [0, 1], show: percent }),
    ),
  );
}

// Steps between which something happened, where a sentence names them.
const bandsOf = (events) =>
  events
    .map((text) => /between steps (\d+) and (\d+)/.exec(text))
    .filter(Boolean)
    .map(([, from, to]) => [Number(from), Number(to)]);

function timeline() {
  const times = report.timeline ?? [];
  if (!times.length) return null;
  const events = report.events ?? [];
  const names = [...new Set(times.flatMap((t) => t.heads.flatMap((h) => Object.keys(h.scores))))];
  const known = [...Object.keys(kTargets), ...Object.keys(kShapes)].filter((name) => names.includes(name));
  const last = (name) => Math.max(...times.at(-1).heads.map((h) => h.scores[name] ?? 0));
  const targets = known.filter((name) => name in kTargets).sort((a, b) => last(b) - last(a));
  const best = targets.find((name) => scoreName(name) === report.heads[state.head].label) ?? targets[0];
  const list = element(
    "select",
    { "data-choice": "score over time", change: () => draw() },
    known.map((name) => element("option", { value: name, selected: name === best }, scoreName(name))),
  );
  const host = element("div", { class: "columns two" });
  const points = (h, name) => times.map((t) => [t.step, t.heads.find((x) => x.layer === h.layer && x.head === h.head)?.scores[name]]);

  const draw = () => {
    const chosen = report.heads[state.head];
    const others = report.heads
      .filter((h) => h !== chosen)
      .map((h) => ({ name: headName(h), look: "other", quiet: true, points: points(h, list.value) }));
    const bands = bandsOf(events);
    host.replaceChildren(
      lineChart({
        title: `${scoreName(list.value)}, ${headName(chosen)}; others grey`,
        xLabel: "step",
        log: true,
        bands,
        height: 240,
        range: list.value.endsWith("distance") ? undefined : [0, 1],
        series: [...others, { name: headName(chosen), look: "first", dots: true, points: points(chosen, list.value) }],
      }),
      lineChart({
        title: "Loss",
        xLabel: "step",
        log: true,
        bands,
        height: 240,
        series: [{ name: "loss", look: "second", dots: true, points: times.map((t) => [t.step, t.loss]) }],
      }),
    );
  };
  watch(["head"], draw);
  return section(
    "time",
    "Over time",
    "Scores while the model was trained; steps are spaced by their logarithm. Shaded: when a head changed.",
    element("div", { class: "choices" }, element("label", {}, element("span", {}, "score"), list)),
    host,
    events.length
      ? element(
          "ul",
          { class: "events" },
          events.map((text) => element("li", {}, text)),
        )
      : null,
  );
}

function removal() {
  const steps = report.cumulative_ablation ?? [];
  if (steps.length < 2) return null;
  const note = (s) => (isNumber(s.layer) ? `after removing ${headName(s)}` : "all heads in place");
  const series = (key, look) => [{ name: key, look, dots: true, points: steps.map((s) => [s.removed, s[key], note(s)]) }];
  return section(
    "removal",
    "Removing heads",
    "Heads are removed one after the other, from the least important to the most important.",
    element(
      "div",
      { class: "columns two" },
      lineChart({ title: "Accuracy", xLabel: "heads removed", range: [0, 1], show: percent, series: series("accuracy", "first") }),
      lineChart({ title: "Loss", xLabel: "heads removed", series: series("loss", "second") }),
    ),
  );
}

function attribution() {
  const a = report.attribution;
  if (!a) return null;
  if (!a.available) return section("attribution", "Direct logit attribution", `Not available: ${a.reason}`);
  const error = isNumber(a.worst_error) ? ` The parts add up to the logits within ${a.worst_error.toPrecision(2)} relative.` : "";
  return section(
    "attribution",
    "Direct logit attribution",
    `What each part adds to the logit of the right answer, on average, with the last norm's scale as it was.${error}`,
    a.warning ? element("p", { class: "warning" }, `Warning: ${a.warning}.`) : null,
    element(
      "div",
      { class: "panel" },
      barList(
        a.parts.map((part) => [part.name, part.mean]),
        signed,
      ),
    ),
  );
}

function rollout() {
  if (!report.rollout?.shape?.[0]) return null;
  const describe = (map, r, c) => [element("b", {}, precisely(map.at(r, c), map.step)), element("br"), `output ${r} → input ${c}`];
  const large = largeMap("Rollout", describe);
  requestAnimationFrame(() =>
    watch(["full", "theme"], () => {
      large.show(mapOf(report.rollout, 0, ...report.rollout.shape.map(positions), attentionLayer(0).causal, ["output", "input"]), "rollout");
    }),
  );
  return section(
    "rollout",
    "Rollout (a heuristic)",
    "Attention multiplied through the layers, half of it passing straight on (Abnar and Zuidema 2020). It ignores values and feed-forward parts: a hint, not evidence.",
    element("div", { class: "panel narrow" }, large.node),
  );
}
