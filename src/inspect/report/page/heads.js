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

// Returns the grid of all heads, by layer. The arrow keys move between heads.
function headGrid() {
  const tiles = report.heads.map((h, index) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const button = element(
      "button",
      {
        class: "tile",
        title: h.sentence,
        "data-head": index,
        click: (event) => update(event.shiftKey ? { beside: index } : { head: index }),
      },
      canvas,
      element("span", {}, element("b", {}, shortName(h)), element("em", {}, h.verdict === "important" ? h.label : "")),
    );
    button.setAttribute("aria-label", `${headName(h)}, ${claim(h)}`);
    return { h, button, canvas };
  });
  const layers = [...new Set(report.heads.map((h) => h.layer))];
  const row = (layer) =>
    element(
      "div",
      { class: "layer", role: "group", "aria-label": layerName(layer) },
      element("h4", {}, layerName(layer)),
      tiles.filter(({ h }) => h.layer === layer).map(({ button }) => button),
    );
  const grid = element(
    "div",
    {
      class: "grid",
      keydown: (event) => {
        const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
        if (!down && !right) return;
        event.preventDefault();
        const { layer, head } = report.heads[state.head];
        const next = report.heads.findIndex((h) => h.layer === layer + down && h.head === head + right);
        if (next < 0) return;
        update({ head: next });
        tiles[next].button.focus();
      },
    },
    layers.map(row),
  );
  grid.style.setProperty("--heads", Math.max(...report.heads.map((h) => h.head)) + 1);

  subscribe(["source", "example", "full", "theme"], () => tiles.forEach(({ canvas }, index) => thumbnail(canvas, attention(index))));
  subscribe(["head", "beside"], () =>
    tiles.forEach(({ button }, index) => {
      button.setAttribute("aria-pressed", String(index === state.head));
      button.classList.toggle("beside", index === state.beside);
      button.tabIndex = index === state.head ? 0 : -1;
    }),
  );
  return element(
    "div",
    { class: "panel" },
    element("h3", {}, "All heads"),
    element(
      "p",
      { class: "about" },
      `Rows are queries, columns are keys.${tiles.length > 1 ? " Shift-click a head to compare it with the selected one." : ""}`,
    ),
    grid,
  );
}
