// Small maps of all heads.

// Returns a tile for each of the heads, {layer, head}, as {h, button, canvas}, and the rows of their layers, of class `row`.
// layerOf(h) names the layer of a head, content(h) is below its map, attributes(h, index) are those of its button;
// choose(index, event) is called for a click and for the arrow keys, which move between heads.
function headTiles(heads, { row, layerOf, attributes, content, choose }) {
  const move = (from, event) => {
    const [down, right] = kArrows[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const next = heads.findIndex((h) => h.layer === from.layer + down && h.head === from.head + right);
    if (next < 0) return;
    choose(next, event);
    tiles[next].button.focus();
  };
  const tiles = heads.map((h, index) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const button = element(
      "button",
      { class: "tile", click: (event) => choose(index, event), keydown: (event) => move(h, event), ...attributes(h, index) },
      canvas,
      element("span", {}, content(h)),
    );
    return { h, button, canvas };
  });
  const rows = [...new Set(heads.map(layerOf))].map((name) =>
    element(
      "div",
      { class: row, role: "group", "aria-label": name },
      element("h4", {}, name),
      tiles.filter(({ h }) => layerOf(h) === name).map(({ button }) => button),
    ),
  );
  return { tiles, rows };
}

// Marks the tile of the selected head, which alone is reached with the tab key.
function markSelected(tiles) {
  tiles.forEach(({ button }, index) => {
    button.setAttribute("aria-pressed", String(index === state.head));
    button.tabIndex = index === state.head ? 0 : -1;
  });
}
