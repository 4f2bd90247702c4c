// The grid of all heads, and the controls above it.

// Returns the controls: mean or example, which example, the head to compare with, and the weight of the full color.
function choices() {
  const examples = report.examples ?? [];
  const varied = [
    ["mean", "mean, positions from the start"],
    ["mean-end", "mean, positions from the end"],
  ];
  const means = lengthsVary() ? varied : [["mean", meanName(0)]];
  const sources = [...means, ...(examples.length ? [["example", "one example"]] : [])];
  const step = (by) => update({ example: (state.example + by + examples.length) % examples.length, source: "example" });
  const nameOf = (e, i) => `${i + 1 - ownInputs} of ${examples.length - ownInputs}${wrongIn(e) ? " ✗" : ""}`;
  const names = examples.map((e, i) => [i, i < ownInputs ? exampleName(i) : nameOf(e, i)]);
  const others = report.heads.map((h, index) => [index, headName(h)]);
  const pick = choice("example", names, state.example, (value) => update({ example: Number(value), source: "example" }));
  const source = choice("show", sources, state.source, (value) => update({ source: value }));
  const weights = [1, 0.5, 0.2, 0.1].map((weight) => [weight, String(weight)]);
  const full = choice("full color at", weights, state.full, (value) => update({ full: Number(value) }));
  const choose = (value) => update({ beside: value === "" ? null : Number(value) });
  const beside = choice("compare with", [["", "no head"], ...others], "", choose);
  const values = element("input", { type: "checkbox", change: () => update({ byValues: values.checked }) });
  const weighted = element("label", { "data-choice": "weighted by values" }, values, element("span", {}, "weighted by values"));
  subscribe(["source", "example", "beside"], () => {
    weighted.hidden = isMean() || !example().value_norms;
    source.lastChild.value = state.source;
    pick.lastChild.value = state.example;
    beside.lastChild.value = state.beside ?? "";
  });
  return element(
    "div",
    { class: "choices" },
    source,
    examples.length ? element("span", { class: "stepper" }, pick, stepButtons("example", step)) : null,
    others.length > 1 ? beside : null,
    full,
    weighted,
  );
}

// Returns the grid of all heads of the report, by layer, and its tiles.
function reportTiles(attributes, content, choose) {
  const layerOf = (h) => layerName(h.layer);
  const { tiles, rows } = headTiles(report.heads, { row: "layer", layerOf, attributes, content, choose });
  const grid = element("div", { class: "grid" }, rows);
  grid.style.setProperty("--heads", Math.max(...report.heads.map((h) => h.head)) + 1);
  subscribe(["head"], () => markSelected(tiles));
  return { tiles, grid };
}

function headGrid() {
  const { tiles, grid } = reportTiles(
    (h, index) => ({ title: h.sentence, "data-head": index, "aria-label": `${headName(h)}, ${claim(h)}` }),
    (h) => [element("b", {}, shortName(h)), element("em", {}, labelShown(h))],
    (index, event) => update(event.type === "click" && event.shiftKey ? { beside: index } : { head: index }),
  );
  subscribe(["source", "example", "byValues", "full", "theme"], () =>
    tiles.forEach(({ canvas }, index) => thumbnail(canvas, attention(index))),
  );
  subscribe(["beside"], () => tiles.forEach(({ button }, index) => button.classList.toggle("beside", index === state.beside)));
  const compare = tiles.length > 1 ? " Shift-click a head to compare it with the selected one." : "";
  return panel("All heads", grid, note(`Rows are queries, columns are keys.${compare}`));
}
