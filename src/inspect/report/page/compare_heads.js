// The section on matched heads of the page of `thimble compare`: the maps of each pair on the same sequence.

// Returns the map of a head of a run on an example.
function matchedMap(trace, run, { layer, head }) {
  const { queries, keys, causal } = report.layers[run][layer];
  return mapOf(trace.attention[layer], head, trace[queries], trace[keys], causal);
}

function matchFigure(pair, run, id) {
  const canvas = element("canvas", { role: "img", "aria-label": `attention of head ${id.name} of ${kRuns[run].name}` });
  subscribe(["theme", `example${pair.second}`], () => {
    const traces = pair.examples[state[`example${pair.second}`]];
    thumbnail(canvas, matchedMap(traces[run === pair.first ? 0 : 1], run, id));
  });
  return element("figure", {}, canvas, element("figcaption", {}, element("b", {}, kRuns[run].name), element("br"), `head ${id.name}`));
}

function matchCard(pair, { head, match, overlap, elsewhere, chance }) {
  const other = match ? matchFigure(pair, pair.second, match) : element("p", {}, "no match");
  const shared = ["overlap ", meter({ value: overlap, chance }), " chance ", number(chance)];
  return element(
    "div",
    { class: "match" },
    element("div", { class: "maps" }, matchFigure(pair, pair.first, head), other),
    isNumber(overlap) ? element("div", { class: "shared" }, shared) : null,
    match ? element("small", {}, "on another sequence ", number(elsewhere)) : null,
  );
}

function matchedHeads(pair, index) {
  const [first, second] = [kRuns[pair.first].name, kRuns[pair.second].name];
  const title = report.heads.length > 1 ? `Heads of ${first} and ${second}` : "Heads";
  const id = `heads${index || ""}`;
  if (pair.obstacle) return section(id, title, `Heads of ${first} and ${second} are not compared: ${pair.obstacle}.`);
  state[`example${pair.second}`] = 0;
  const names = pair.examples.map((traces, i) => {
    const text = (traces[0].source ?? traces[0].tokens).map(visible).join(" ");
    return [i, `${i + 1}: ${text.length > 40 ? `${text.slice(0, 39)}…` : text}`];
  });
  const list = choice("example", names, 0, (value) => update({ [`example${pair.second}`]: Number(value) }));
  const unmatched = pair.unmatched.map(({ name }) => `head ${name}`).join(", ");
  const mostShared = [...pair.matches].sort((a, b) => (b.match ? b.overlap : -1) - (a.match ? a.overlap : -1));
  const cards = mostShared.map((match) => matchCard(pair, match));
  return section(
    id,
    title,
    `Heads matched one to one by overlap, the attention that two heads share on the same ${grouped(pair.sequences)} test sequences (1 − total-variation distance). Chance, the mark on each bar: what a match must exceed, the largest overlap with untrained copies of the second model, on a scale of the spread that each head has over them. On another sequence: what follows from positions alone.`,
    element("div", { class: "choices" }, list),
    element("div", { class: "panel" }, element("div", { class: "matches" }, cards)),
    unmatched ? element("p", {}, `Without a match in ${first}: ${unmatched} of ${second}.`) : null,
  );
}
