// Sections on the whole model: facts, training, heads over time, cumulative ablation, attribution, rollout.

const fact = (name, value, exact) => element("div", {}, element("dt", {}, name), element("dd", { title: exact }, value));

function modelLine() {
  const m = report.model ?? {};
  const size = `d_model ${m.d_model}`;
  const kind = report.attentions ? ["encoder and decoder"] : [m.mask === "none" ? "no mask" : `${m.mask} mask`, `output per ${m.output}`];
  const attention = [counted(m.layers, "layer"), counted(m.heads, "head"), size, `${m.norm}-norm`, ...kind];
  const words = m.kind === "recurrent" ? ["recurrent encoder and decoder", size, `${m.score} score`] : attention;
  const hash = report.weights_hash ? element("span", {}, "weights ", element("code", {}, report.weights_hash)) : null;
  return element("p", { class: "model" }, ...words.map((text) => element("span", {}, text)), hash);
}

function facts() {
  const b = report.baseline ?? {};
  const measured = (name, x, show) => (isNumber(x) ? fact(name, show(x), String(x)) : null);
  return element(
    "dl",
    { class: "facts" },
    measured("accuracy of all answers", b.accuracy, percent),
    measured("sequences without a mistake", b.sequence_accuracy, percent),
    measured("loss", b.loss, (x) => shorter(x, 4)),
    report.source_length ? fact("source length", grouped(report.source_length)) : null,
    fact("sequence length", grouped(report.length)),
  );
}

const kStyles = { train: "first", validation: "second", test: "third" };

function training() {
  const curves = report.curves ?? [];
  if (!curves.length) return section("training", "Results", null, facts());
  const splits = [...new Set(curves.map((c) => c.split))];
  const steps = curves.map((c) => c.step);
  const ends = [Math.min(...steps), Math.max(...steps)];
  const chart = (title, key, [name, level], more) => {
    const points = (split) => curves.filter((c) => c.split === split && isNumber(c[key])).map((c) => [c.step, c[key]]);
    const series = splits
      .map((split) => ({ name: split, style: kStyles[split] ?? "third", dots: true, points: points(split) }))
      .filter((s) => s.points.length);
    if (series.length && isNumber(level)) series.push({ name, style: "third", points: ends.map((step) => [step, level]) });
    return series.length ? lineChart({ title, xLabel: "step", series, choose: chooseSamples, ...more }) : null;
  };
  const loss = chart("Loss", "loss", ["lowest possible loss", report.lowest_possible_loss], {});
  const accuracy = chart("Accuracy", "accuracy", ["chance", report.chance], { range: [0, 1], show: percent });
  return section("training", "Training", null, facts(), element("div", { class: "columns two" }, loss, accuracy), drawnSamples());
}

function positionLosses() {
  const kEnough = 30; // labels
  const all = (report.loss_by_position ?? []).map((at, i) => ({ ...at, read: i + 1 })).filter(({ labels }) => labels >= kEnough);
  if (all.length < 2) return null;
  const counts = all.map(({ labels }) => labels);
  const points = all.map(({ read, loss, labels }) => [read, loss, `${grouped(labels)} labels`]);
  return section(
    "context",
    "Context",
    `Loss of the next token after so many tokens of the window, on ${grouped(report.sequences)} test sequences: what a longer context is worth. Each point is a mean over ${grouped(Math.min(...counts))} to ${grouped(Math.max(...counts))} labels; positions with fewer than ${kEnough} are left out.`,
    lineChart({ title: "Loss by position", xLabel: "tokens read", series: [{ name: "loss", style: "first", dots: true, points }] }),
  );
}

// Selects the samples of the step that is nearest to the given one.
function chooseSamples(step) {
  const distances = (report.samples ?? []).map((s) => Math.abs(s.step - step));
  if (distances.length) update({ samples: distances.indexOf(Math.min(...distances)) });
}

// Returns what the model drew while it was trained, with a slider over the steps.
function drawnSamples() {
  const all = report.samples ?? [];
  if (!all.length) return null;
  const texts = element("pre", { class: "samples" });
  const place = slider("step", "samples", all.length - 1, (at) => [`step ${grouped(all[at].step)}`, ""]);
  subscribe(["samples"], () => {
    texts.textContent = all[state.samples].texts.join("\n");
  });
  const about =
    "Drawn with the same random numbers each time, so that what changes is the model. A click on a curve shows those of the nearest step.";
  return panel("Samples while it trained", element("p", {}, about), element("div", { class: "choices" }, place), texts);
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
  let score = targets.find((name) => scoreName(name) === report.heads[state.head].label) ?? targets[0] ?? known[0];
  const host = element("div", { class: "columns two" });
  const points = (h) => times.map((t) => [t.step, t.heads.find((x) => x.layer === h.layer && x.head === h.head)?.scores[score]]);
  const chart = (title, range, series) =>
    lineChart({ title, xLabel: "step", log: true, bands: bandsOf(events), height: 240, range, series });

  const draw = () => {
    const chosen = report.heads[state.head];
    const others = report.heads
      .filter((h) => h !== chosen)
      .map((h) => ({ name: headName(h), style: "other", quiet: true, points: points(h) }));
    const shown = { name: headName(chosen), style: "first", dots: true, points: points(chosen) };
    const loss = { name: "loss", style: "second", dots: true, points: times.map((t) => [t.step, t.loss]) };
    host.replaceChildren(
      chart(`${scoreName(score)}, ${headName(chosen)}; others gray`, score.endsWith("distance") ? undefined : [0, 1], [...others, shown]),
      chart("Loss", undefined, [loss]),
    );
  };
  const options = known.map((name) => [name, scoreName(name)]);
  const list = choice(
    "score",
    options,
    score,
    (value) => {
      score = value;
      draw();
    },
    "score over time",
  );
  subscribe(["head"], draw);
  const on = isNumber(times[0].sequences) ? ` on ${grouped(times[0].sequences)} validation sequences` : "";
  return section(
    "time",
    "Over time",
    `Scores of heads during training${on}, on a logarithmic step axis. Shaded: a head took up a pattern or gave it up.`,
    element("div", { class: "choices" }, list),
    host,
    events.length ? element("ul", { class: "events" }, ...events.map((text) => element("li", {}, text))) : null,
  );
}

// Returns the curves of heads that are ablated one after the other, in both orders, and how many are removable.
function cumulativeAblation() {
  if (report.heads.length < 2) return null;
  const { greedy_ablation: greedy, removable } = report.joint_ablation;
  const orders = [
    ["by importance", "first", report.cumulative_ablation],
    ["greedily", "second", greedy],
  ];
  const after = (s) => (isNumber(s.layer) ? `after ablating ${headName(s)}` : "no head ablated");
  const series = (key) =>
    orders.map(([name, style, steps]) => ({ name, style, dots: true, points: steps.map((s) => [s.removed, s[key], after(s)]) }));
  const chart = (title, key, more) => lineChart({ title, xLabel: "heads ablated", named: true, series: series(key), ...more });
  const charts = [chart("Accuracy", "accuracy", { range: [0, 1], show: percent }), chart("Loss", "loss")];
  const count = (name, number) => fact(`removable ${name}`, `${grouped(number)} of ${report.heads.length}`);
  const counts = [
    count("by importance", removable.by_importance),
    count("greedily", removable.greedily),
    count("each alone", removable.alone),
  ];
  return section(
    "ablation",
    "Cumulative ablation",
    `Heads are zero-ablated one after the other: by increasing gradient importance, and greedily, where each step ablates the head that costs least, measured anew. A head is removable while less than the smallest effect of interest is lost, ${smallestEffect()}.`,
    element("div", { class: "columns two" }, charts),
    element("dl", { class: "facts" }, counts),
  );
}

// Returns a warning for a model that is not shown to be better than chance; where it is shown not to be, no head gets a label.
function chanceWarning() {
  const scale = report.scale;
  if (!scale || scale.at_chance === false || scale.smallest_effect.accuracy === null || !report.baseline.labels) return null;
  const [low, high] = scale.above_chance.accuracy_interval;
  const interval = ` (95 % CI of the difference: ${points(low)} to ${points(high)} points)`;
  const [claim, result] = scale.at_chance
    ? ["no better than", "No head gets a label."]
    : ["not shown to be better than", "More test sequences (--sequences, data.test) would tell."];
  const text = `The model is ${claim} chance: its accuracy is ${percent(report.baseline.accuracy)}, that of the best constant answer ${percent(scale.chance.accuracy)}${interval}, that of untrained models ${percent(scale.untrained.accuracy.mean)} ± ${percent(scale.untrained.accuracy.sd)}. ${result}`;
  return element("p", { class: "warning" }, text);
}

// Returns the map of what the head of a row is worth without that of a column, by a measure of `worth`; at a cell, all changes.
function pairMap(title, pairs, measure, factor, smallest) {
  const names = report.heads.map((head) => head.name);
  const byNames = new Map(pairs.map((pair) => [pair.names.join(), pair]));
  const pairOf = (r, c) => byNames.get([names[Math.min(r, c)], names[Math.max(r, c)]].join());
  const worth = (pair, which) => factor * pair.worth[measure][which];
  const describe = (map, r, c) => {
    const pair = pairOf(r, c);
    const change = (effect) => `${points(effect.accuracy_change)} points, loss ${signed(effect.loss_change)}`;
    const alone = `alone ${change(report.heads[r].ablation.zero)}`;
    if (!pair) return tipLines(names[r], alone);
    return tipLines(`${names[r]} without ${names[c]}`, `${names[r]} ${alone}`, `both ${change(pair)}`);
  };
  const large = largeMap(title, describe);
  const map = {
    rows: names.length,
    columns: names.length,
    at: (r, c) => (r === c ? null : worth(pairOf(r, c), r < c ? 0 : 1)),
    rowLabels: names,
    columnLabels: names,
    axes: ["head", "ablated"],
    full: Math.max(smallest, ...pairs.flatMap((pair) => [0, 1].map((which) => Math.abs(worth(pair, which))))),
    signed: true,
  };
  subscribe(["theme"], () => large.show(map, title));
  return panel(title, large.node);
}

// Returns the heads that are worth something only where others are ablated, and the pairs that were measured.
function jointAblation() {
  const joint = report.joint_ablation;
  if (report.heads.length < 2) return null;
  const about = (...content) => section("joint", "Heads ablated together", ...content);
  if (report.scale.at_chance) return about("The model is no better than chance, so no sets of heads were measured.");
  if (!joint.pairs.length) return about("No sets of heads were measured.");
  const larger = joint.tested > 0;
  const search = joint.exact
    ? "This finds every larger set that costs, provided that more ablated heads never cost less."
    : "Not every larger set was measured.";
  const groups = larger
    ? ` Of heads that cost nothing alone, ${counted(joint.tested, "larger set")} on ${counted(joint.group_sequences, "sequence")}. ${search}`
    : "";
  const change = (effect) => [
    changeCell(effect.accuracy_change, effect.accuracy_interval, points),
    changeCell(effect.capped_loss.change, effect.capped_loss.interval, signed),
  ];
  const rows = joint.groups.flatMap((set) =>
    set.backups.map(({ name, worth }) => {
      const others = set.names.filter((other) => other !== name);
      return [name, others.join(", "), ...change(worth), ...change(set)];
    }),
  );
  const { accuracy, loss } = report.scale.smallest_effect;
  const columns = ["backup", "without", "Δ accuracy (points)", "Δ capped loss", "all: Δ accuracy", "all: Δ capped loss"];
  return about(
    `Zero ablation of ${counted(joint.pairs.length, "pair")} on ${counted(joint.sequences, "sequence")}.${groups} A head is a backup if it costs nothing alone, but is worth more than the smallest effect of interest, ${smallestEffect()}, where the others are ablated: by the lower end of the 95 % CI, and significantly, after Holm's correction for all such pairs${larger ? ", and Bonferroni's for larger sets" : ""}.`,
    rows.length ? element("div", { class: "panel" }, plainTable(columns, rows)) : element("p", {}, "No head is a backup."),
    element(
      "div",
      { class: "columns two" },
      pairMap("Worth of a head without another, in points", joint.pairs, "accuracy", 100, 100 * accuracy),
      pairMap("Worth of a head without another, in capped loss", joint.pairs, "capped_loss", 1, loss),
    ),
  );
}

function attribution() {
  const a = report.attribution;
  if (!a) return null;
  if (!a.available) return section("attribution", "Direct logit attribution", `Not available: ${a.reason}`);
  const error = isNumber(a.worst_error)
    ? ` The parts add up to the logits within a relative error of ${a.worst_error.toPrecision(2)}.`
    : "";
  const parts = a.parts.map((part) => [part.name, part.mean]);
  return section(
    "attribution",
    "Direct logit attribution",
    `What each part adds to the logit of the correct token, on average, with the scale of the final norm frozen.${error}`,
    a.warning ? element("p", { class: "warning" }, `Warning: ${a.warning}.`) : null,
    element("div", { class: "panel" }, barList(parts, signed)),
  );
}

function rollout() {
  if (!report.rollout?.shape?.[0]) return null;
  const large = largeMap("Rollout", describeWeight);
  subscribe(["full", "theme", "source"], () => large.show(meanOf(report, "rollout", 0, ["output", "input"]), `rollout, ${meanName(0)}`));
  return section(
    "rollout",
    "Rollout (a heuristic)",
    "The product over layers of half the mean attention and half the identity (Abnar and Zuidema 2020). It ignores values and feed-forward layers: a hint, not evidence.",
    note(`Mean of ${sequencesText(0)}.`),
    element("div", { class: "panel narrow" }, large.node),
  );
}
