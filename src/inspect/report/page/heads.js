// The grid of all heads, and the controls above it.

// Returns the controls: mean or example, which example, the head to compare with, and the weight of the full color.
function choices() {
  const examples = report.examples ?? [];
  const choice = (name, options, chosen, act) =>
    element(
      "label",
      {},
      element("span", {}, name),
      element(
        "select",
        { "data-choice": name, change: (event) => act(event.target.value) },
        options.map(([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text)),
      ),
    );
  const means = lengthsVary()
    ? [
        ["mean", "mean, positions from the start"],
        ["mean-end", "mean, positions from the end"],
      ]
    : [["mean", meanName(0)]];
  const sources = [...means, ...(examples.length ? [["example", "one example"]] : [])];
  const step = (by) => update({ example: (state.example + by + examples.length) % examples.length, source: "example" });
  const pick = choice(
    "example",
    examples.map((e, i) => [
      i,
      i < ownInputs ? exampleName(i) : `${i + 1 - ownInputs} of ${examples.length - ownInputs}${wrongIn(e) ? " ✗" : ""}`,
    ]),
    state.example,
    (value) => update({ example: Number(value), source: "example" }),
  );
  const list = pick.querySelector("select");
  const source = choice("show", sources, state.source, (value) => update({ source: value }));
  const full = choice(
    "full color at",
    [
      [1, "1"],
      [0.5, "0.5"],
      [0.2, "0.2"],
      [0.1, "0.1"],
    ],
    state.full,
    (value) => update({ full: Number(value) }),
  );
  const others = report.heads.map((h, index) => [index, headName(h)]);
  const beside = choice("compare with", [["", "no head"], ...others], "", (value) =>
    update({ beside: value === "" ? null : Number(value) }),
  );
  subscribe(["source", "example", "beside"], () => {
    source.querySelector("select").value = state.source;
    list.value = state.example;
    beside.querySelector("select").value = state.beside ?? "";
  });
  return element(
    "div",
    { class: "choices" },
    source,
    examples.length
      ? element(
          "span",
          { class: "stepper" },
          pick,
          element("button", { "aria-label": "previous example", click: () => step(-1) }, "‹"),
          element("button", { "aria-label": "next example", click: () => step(1) }, "›"),
        )
      : null,
    others.length > 1 ? beside : null,
    full,
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
    (h) => [element("b", {}, shortName(h)), element("em", {}, h.verdict === "important" ? h.label : "")],
    (index, event) => update(event.type === "click" && event.shiftKey ? { beside: index } : { head: index }),
  );
  subscribe(["source", "example", "full", "theme"], () => tiles.forEach(({ canvas }, index) => thumbnail(canvas, attention(index))));
  subscribe(["beside"], () => tiles.forEach(({ button }, index) => button.classList.toggle("beside", index === state.beside)));
  return element(
    "div",
    { class: "panel" },
    element("h3", {}, "All heads"),
    grid,
    element(
      "p",
      { class: "about" },
      `Rows are queries, columns are keys.${tiles.length > 1 ? " Shift-click a head to compare it with the selected one." : ""}`,
    ),
  );
}
