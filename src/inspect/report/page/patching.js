// The sections on activation patching and on edges between the parts of the model.

// Returns the share of the logit difference that a patch moves, with its approximate 95 % CI.
function shareText({ effect, interval }) {
  if (!isNumber(effect)) return "not defined";
  return signed(effect) + (interval ? ` (approximate 95 % CI ${signed(interval[0], 2)} to ${signed(interval[1], 2)})` : "");
}
const measureText = ({ measure }) => (measure === "logit_difference" ? "logit difference" : "log-probability of the clean labels");

// Returns the map of noising the heads of a layer at each position; `full` is the effect that gets the full color.
function positionMap(heads, full) {
  const title = layerName(heads[0].layer);
  const at = (r, c) => heads[r].noising.positions[c];
  const columns = heads[0].noising.positions.length;
  const { clean } = report.patching; // of one pair
  const map = {
    rows: heads.length,
    columns,
    at: (r, c) => Math.max(0, at(r, c).effect ?? 0),
    rowLabels: heads.map(shortName),
    columnLabels: clean?.length === columns ? clean : positions(columns),
    axes: ["head", "position"],
    full,
    least: 8, // pixels of a cell, so that every head is named
    ends: ["0", shorter(full / 2), shorter(full)],
  };
  const describe = (_, r, c) => [
    `${headName(heads[r])}, position ${c}: `,
    element("b", {}, shareText(at(r, c))),
    `, ${counted(at(r, c).pairs, "pair")}`,
  ];
  const name = `${title}: share of the logit difference by head and position`;
  const large = largeMap(name, describe);
  subscribe(["theme"], () => large.show(map, name));
  return element("div", { class: "panel scroll" }, element("h3", {}, title), large.node);
}

function patching() {
  if (!report.patching) return null;
  const { heads, inputs, clean, clean_labels, corrupted, corrupted_labels } = report.patching;
  const largest = Math.max(0, ...heads.flatMap((h) => h.noising.positions.map(({ effect }) => effect ?? 0)));
  const layers = [...new Set(heads.map((h) => h.layer))].map((layer) => heads.filter((h) => h.layer === layer));
  const line = (name, tokens, answers) => [name, tokens.join(" "), answers.join(" ")];
  const pair = () => [line("clean", clean, clean_labels), line("corrupted", corrupted, corrupted_labels)];
  const rows = heads.map((h) => [h.name, ...[h.noising, h.denoising].map((x) => changeCell(x.effect, x.interval, signed))]);
  return section(
    "patching",
    "Activation patching",
    `${inputs}. Noising: the share of the ${measureText(report.patching)} (${report.patching.difference.toPrecision(3)} a pair) that is lost when the clean run gets the head's output on the corrupted input. Denoising: the share that is restored when the corrupted run gets the clean one. Small: approximate 95 % CIs. The maps show noising at one position; the strongest square is ${shorter(largest)}.`,
    clean ? element("div", { class: "panel" }, plainTable(["input", "tokens", "answers"], pair(), "config")) : null,
    element("div", { class: "panel" }, plainTable(["head", "noising", "denoising"], rows)),
    element("div", { class: "stack" }, ...layers.map((of) => positionMap(of, largest))),
  );
}

const kGraph = { row: 96, margin: 8, side: 60, box: { width: 100, height: 38 }, widest: 14 }; // pixels
const kLeastEffects = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2]; // of edges that are drawn
const kFewEdges = 30; // drawn at first

// Returns the drawing of the edges, [{from, to, effect}], the largest first, in a width of `room` pixels, or more if its parts
// need more: the embedding at the bottom, the logits on top.
function edgeGraph(edges, senders, room) {
  // Returns the row of a part, counted from the embedding, its heads' columns and what it reads: "0.1", "1.0-1 key", "ffn 0".
  const place = (name) => {
    const [, layer, first, last = first, input] = /^(\d+)\.(\d+)(?:-(\d+))?(?: (.*))?$/.exec(name) ?? [];
    if (layer) return { row: 2 * layer + 1, column: (Number(first) + Number(last) + 1) / 2, input };
    const [, net] = /^ffn (\d+)$/.exec(name) ?? [];
    return { row: net ? 2 * net + 2 : name === "logits" ? top : 0 };
  };
  const parts = senders.map(place);
  const top = Math.max(...parts.map(({ row }) => row)) + 1;
  const columns = Math.ceil(Math.max(1, ...parts.map(({ column }) => column ?? 0)));
  const side = Math.min(kGraph.side, room / 12); // for edges that bend around all boxes
  const column = Math.max(kGraph.box.width + 8, (room - 2 * side) / columns);
  const box = { ...kGraph.box, width: Math.min(Math.max(kGraph.box.width, column / 2), 180) };
  const width = column * columns + 2 * side;
  const height = kGraph.row * top + box.height + 2 * kGraph.margin;
  // Returns where the lines of a part start or end: a head has places for query, key and value.
  const xOf = (part) => {
    if (part.column === undefined) return width / 2;
    return side + column * part.column + (({ query: -1, "query and key": -1, value: 1 }[part.input] ?? 0) * box.width) / 3;
  };
  const yOf = ({ row }) => height - kGraph.margin - box.height - kGraph.row * row; // the top of its box
  const within = (x) => Math.min(Math.max(x, 2), width - 2).toFixed(1);
  const line = (edge) => {
    const share = Math.abs(edge.effect ?? 0) / Math.abs(edges[0].effect || 1);
    const [from, to] = [place(edge.from), place(edge.to)];
    const [x1, y1, x2, y2] = [xOf(from), yOf(from), xOf(to), yOf(to) + box.height];
    // Edges that skip rows bend outward, around the boxes between.
    const bend = (to.row - 1 - from.row) * 50 * (x1 + x2 < width - 1 ? -1 : 1);
    const reach = (y1 - y2) / 2;
    return element(
      "path",
      {
        d: `M${x1.toFixed(1)} ${y1}C${within(x1 + bend)} ${y1 - reach} ${within(x2 + bend)} ${y2 + reach} ${x2.toFixed(1)} ${y2}`,
        class: `edge to-${to.input?.split(" ")[0] ?? "other"}${edge.in_circuit ? "" : " outside"}`,
        "stroke-width": Math.max(0.6, kGraph.widest * share).toFixed(2),
      },
      element("title", {}, `${edge.from} -> ${edge.to}: ${shareText(edge)}`),
    );
  };
  const node = (name) => {
    const [x, y] = [xOf(place(name)), yOf(place(name))];
    const label = labelShown(report.heads.find((h) => h.name === name));
    const lines = label ? [element("tspan", {}, name), element("tspan", { x, dy: 15 }, label)] : [name];
    return [
      element("rect", { x: x - box.width / 2, y, ...box, rx: 6, class: "node" }),
      element("text", { x, y: y + (label ? 16 : 23), "text-anchor": "middle" }, ...lines),
    ];
  };
  return element(
    "svg",
    { class: "figure", viewBox: `0 0 ${width} ${height}`, width, role: "img" },
    element("title", {}, "Edges between the parts of the model, as wide as their effect"),
    [...edges].reverse().map(line),
    [...senders, "logits"].flatMap(node),
  );
}

// Returns the card of the graph, with the choice of the least effect of an edge that it draws.
function edgePanel(all, size) {
  const host = element("div", { class: "scroll" });
  const text = element("p", { "aria-live": "polite" });
  const senders = [...new Set(report.edges.edges.map(({ from }) => from))];
  const shown = () => all.filter((edge) => size(edge) >= state.leastEffect);
  const draw = () => host.clientWidth && host.replaceChildren(edgeGraph(shown(), senders, host.clientWidth));
  const shareOf = (least) => (least ? `${100 * least} %` : "0 %, all edges");
  const few = (least) => least > 0 && all.filter((edge) => size(edge) >= least).length <= kFewEdges;
  state.leastEffect = kLeastEffects.find(few) ?? kLeastEffects.at(-1);
  const options = kLeastEffects.map((least) => [least, shareOf(least)]);
  const list = choice("effect at least", options, state.leastEffect, (value) => update({ leastEffect: Number(value) }));
  subscribe(["leastEffect"], () => {
    const rule = `those whose effect, up or down, is at least ${shareOf(state.leastEffect)}`;
    text.textContent = `${shown().length} of ${all.length} edges are drawn${state.leastEffect ? `, ${rule}` : ""}.`;
    draw();
  });
  new ResizeObserver(draw).observe(host);
  const names = [...["query", "key", "value"].map((name) => [name, name]), ["other", "feed-forward net, logits"]];
  const keys = names.map(([name, meaning]) => element("span", { class: `to-${name}` }, meaning));
  const legend = element("p", { class: "legend" }, keys, element("span", {}, "faint: not in the circuit"));
  return element("div", { class: "panel" }, element("div", { class: "choices" }, list, text), host, legend);
}

function edges() {
  if (!report.edges) return null;
  const { inputs, correlation, circuit } = report.edges;
  const kRows = 20;
  const size = ({ effect }) => Math.abs(effect ?? 0);
  const all = [...report.edges.edges].sort((a, b) => size(b) - size(a));
  const rounded = (x) => `${(100 * x).toFixed(1)} %`;
  const row = (edge) => [
    `${edge.from} -> ${edge.to}`,
    changeCell(edge.effect, edge.interval, signed),
    signed(edge.attribution),
    edge.in_circuit ? "yes" : "",
  ];
  const rows = all.slice(0, kRows).map(row);
  return section(
    "edges",
    "Edges",
    `${inputs}. The effect of an edge is the share of the ${measureText(report.edges)} that is lost when it alone carries what it carries on the corrupted input. Lines are as wide as the effect; 0.1 is head 1 of layer 0.`,
    edgePanel(all, size),
    element(
      "p",
      {},
      `Circuit: ${circuit.edges} of ${all.length} edges keep ${rounded(circuit.kept)}${circuit.interval ? ` (approximate 95 % CI ${rounded(circuit.interval[0])} to ${rounded(circuit.interval[1])})` : ""} of it on ${counted(circuit.pairs, "pair")} that did not choose them (required: ${(100 * circuit.required).toFixed(0)} %); without them ${rounded(circuit.left)} is left. ${circuit.random.circuits} random circuits of as many edges keep ${rounded(circuit.random.kept_mean)} on average and ${rounded(circuit.random.kept_best)} at best. Completeness: without a part of the circuit, circuit and model differ by ${(100 * circuit.incompleteness).toFixed(1)} points, at the worst of ${circuit.tried} sets tried. Edge attribution patching correlates with the exact effects at ${shorter(correlation)}.`,
    ),
    element("div", { class: "panel" }, plainTable(["edge", "effect", "attribution", "circuit"], rows)),
  );
}
