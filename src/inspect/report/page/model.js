// Sections on the whole model: facts, training, heads over time, cumulative ablation, attribution, rollout.

function facts() {
  const m = report.model ?? {};
  const b = report.baseline ?? {};
  const big = (name, value, exact) =>
    value === null ? null : element("div", {}, element("dt", {}, name), element("dd", { title: exact ?? null }, value));
  const measured = (name, x, show) => (isNumber(x) ? big(name, show(x), String(x)) : null);
  const words =
    m.kind === "recurrent"
      ? ["recurrent encoder and decoder", `d_model ${m.d_model}`, `${m.score} score`]
      : [
          `${m.layers} layer${m.layers === 1 ? "" : "s"}`,
          `${m.heads} head${m.heads === 1 ? "" : "s"}`,
          `d_model ${m.d_model}`,
          `${m.norm}-norm`,
          ...(report.attentions ? ["encoder and decoder"] : [m.mask === "none" ? "no mask" : `${m.mask} mask`, `output per ${m.output}`]),
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
      measured("token accuracy", b.accuracy, percent),
      measured("sequence accuracy", b.sequence_accuracy, percent),
      measured("loss", b.loss, (x) => shorter(x, 4)),
      big(`${report.split ?? ""} sequences`.trim(), grouped(report.sequences)),
      report.source_length ? big("source length", grouped(report.source_length)) : null,
      big("sequence length", grouped(report.length)),
    ),
  ];
}

const kStyles = { train: "first", validation: "second", test: "third" };

function training() {
  const curves = report.curves ?? [];
  if (!curves.length) return null;
  const splits = [...new Set(curves.map((c) => c.split))];
  const steps = curves.map((c) => c.step);
  const chart = (title, key, [name, level], more) => {
    const series = splits
      .map((split) => ({
        name: split,
        style: kStyles[split] ?? "third",
        dots: true,
        points: curves.filter((c) => c.split === split && isNumber(c[key])).map((c) => [c.step, c[key]]),
      }))
      .filter((s) => s.points.length);
    if (series.length && isNumber(level))
      series.push({
        name,
        style: "third",
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
      chart("Loss", "loss", ["lowest possible loss", report.lowest_possible_loss], {}),
      chart("Accuracy", "accuracy", ["chance", report.chance], { range: [0, 1], show: percent }),
    ),
  );
}

// Returns the intervals of steps that the sentences name.
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
      .map((h) => ({ name: headName(h), style: "other", quiet: true, points: points(h, list.value) }));
    const bands = bandsOf(events);
    host.replaceChildren(
      lineChart({
        title: `${scoreName(list.value)}, ${headName(chosen)}; others gray`,
        xLabel: "step",
        log: true,
        bands,
        height: 240,
        range: list.value.endsWith("distance") ? undefined : [0, 1],
        series: [...others, { name: headName(chosen), style: "first", dots: true, points: points(chosen, list.value) }],
      }),
      lineChart({
        title: "Loss",
        xLabel: "step",
        log: true,
        bands,
        height: 240,
        series: [{ name: "loss", style: "second", dots: true, points: times.map((t) => [t.step, t.loss]) }],
      }),
    );
  };
  subscribe(["head"], draw);
  return section(
    "time",
    "Over time",
    "Scores of heads during training, on a logarithmic step axis. Shaded: a head took up a pattern or gave it up.",
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

function cumulativeAblation() {
  const steps = report.cumulative_ablation ?? [];
  if (steps.length < 2) return null;
  const note = (s) => (isNumber(s.layer) ? `after ablating ${headName(s)}` : "no head ablated");
  const series = (key, style) => [{ name: key, style, dots: true, points: steps.map((s) => [s.removed, s[key], note(s)]) }];
  return section(
    "ablation",
    "Cumulative ablation",
    "Heads are zero-ablated one after the other, in order of increasing gradient importance.",
    element(
      "div",
      { class: "columns two" },
      lineChart({ title: "Accuracy", xLabel: "heads ablated", range: [0, 1], show: percent, series: series("accuracy", "first") }),
      lineChart({ title: "Loss", xLabel: "heads ablated", series: series("loss", "second") }),
    ),
  );
}

// Returns a warning for a model that is no better than chance, whose heads get no labels.
function chanceWarning() {
  const scale = report.scale;
  if (!scale?.at_chance) return null;
  const [low, high] = scale.above_chance.accuracy_interval;
  const text = `The model is no better than chance: its accuracy is ${percent(report.baseline.accuracy)}, that of the best constant answer ${percent(scale.chance.accuracy)} (95 % CI of the difference: ${points(low)} to ${points(high)} points), that of untrained models ${percent(scale.untrained.accuracy.mean)} ± ${percent(scale.untrained.accuracy.sd)}. No head gets a label.`;
  return element("p", { class: "warning" }, text);
}

// Returns the table of sets of heads that were ablated together.
function jointAblation() {
  const joint = report.joint_ablation;
  if (!joint?.pairs.length) return null;
  const change = (a, show, value, interval) => changeCell(a[value], a[interval], show);
  const row = (set) => [
    set.names.join(", "),
    change(set, points, "accuracy_change", "accuracy_interval"),
    change(set, signed, "loss_change", "interval"),
    change(set.excess, points, "accuracy_change", "accuracy_interval"),
    change(set.excess, signed, "loss_change", "interval"),
    set.costly ? "yes" : "no",
  ];
  const larger = joint.groups.filter((set) => set.heads.length > 2);
  const others = joint.pairs.filter((set) => !set.costly);
  const sets = [...joint.groups.filter((set) => set.heads.length === 2), ...larger, ...others];
  const { by_importance: ordered, greedily, alone } = joint.removable;
  const search = joint.exact ? "every larger group" : `${joint.tested} larger groups, not all of them`;
  return section(
    "joint",
    "Heads ablated together",
    `Zero ablation of pairs of heads that cost nothing alone, and of ${search}, on ${grouped(joint.sequences)} sequences. The excess is the change beyond the sum of the changes by each head alone; heads whose excess is a cost back each other up (Holm's correction for the number of pairs). Removable heads: ${ordered} in order of gradient importance, ${greedily} greedily, ${alone} each alone.`,
    plainTable(["heads", "Δ accuracy (points)", "Δ loss", "excess (points)", "excess in loss", "backup"], sets.map(row)),
  );
}

function attribution() {
  const a = report.attribution;
  if (!a) return null;
  if (!a.available) return section("attribution", "Direct logit attribution", `Not available: ${a.reason}`);
  const error = isNumber(a.worst_error)
    ? ` The parts add up to the logits within a relative error of ${a.worst_error.toPrecision(2)}.`
    : "";
  return section(
    "attribution",
    "Direct logit attribution",
    `What each part adds to the logit of the correct token, on average, with the scale of the final norm frozen.${error}`,
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
    subscribe(["full", "theme"], () => {
      large.show(
        mapOf(report.rollout, 0, ...report.rollout.shape.map(positions), attentionLayer(0).causal, ["output", "input"]),
        "rollout",
      );
    }),
  );
  return section(
    "rollout",
    "Rollout (a heuristic)",
    "The product over layers of half the mean attention and half the identity (Abnar and Zuidema 2020). It ignores values and feed-forward layers: a hint, not evidence.",
    element("div", { class: "panel narrow" }, large.node),
  );
}
