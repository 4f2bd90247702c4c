// Maps of means over sequences, by position from the start or from the end.

const isMean = () => state.source !== "example";
const fromEnd = () => state.source === "mean-end";
// Whether positions from the end are others than those from the start.
const lengthsVary = () => report.heads.some((h) => h.mean_weights_from_end);

// Returns over how many sequences the cells of a layer are means, as "67 sequences" or "1 to 67 sequences".
function sequencesText(layer) {
  const counts = unpack(report.mean_counts[layer]).numbers.filter((n) => n > 0);
  const [least, most] = [counts.reduce((a, b) => Math.min(a, b), Infinity), counts.reduce((a, b) => Math.max(a, b), 0)];
  return `${least < most ? `${grouped(least)} to ` : ""}${counted(most, "sequence")}`;
}

const meanName = (layer) => `mean of ${sequencesText(layer)}${fromEnd() ? ", positions from the end" : ""}`;

// Returns the map of a mean, holder[name], without the rows and columns that no sequence has. `count` is the number of
// sequences of a cell; where it is 0, `at` is null. Positions from the end are labeled −1, −2, ….
function meanOf(holder, name, layer, axes) {
  const shifted = fromEnd() && holder[`${name}_from_end`];
  const all = mapOf(shifted || holder[name], 0, [], [], attentionLayer(layer).causal, axes);
  const counts = unpack(report.mean_counts[layer]).numbers;
  const countAt = (r, c) => counts[r * all.columns + c];
  const indices = (n) => Array.from({ length: n }, (_, i) => i);
  const rows = indices(all.rows).filter((r) => countAt(r, 0) > 0).length;
  const columns = indices(all.columns).filter((c) => countAt(0, c) > 0).length;
  const count = (r, c) => (shifted ? countAt(rows - 1 - r, columns - 1 - c) : countAt(r, c));
  const [firstRow, firstColumn] = shifted ? [all.rows - rows, all.columns - columns] : [0, 0];
  const at = (r, c) => (count(r, c) ? all.at(firstRow + r, firstColumn + c) : null);
  const labels = (n) => (fromEnd() ? indices(n).map((i) => `−${n - i}`) : positions(n));
  const cells = indices(rows * columns).map((i) => count(Math.floor(i / columns), i % columns));
  return {
    ...all,
    rows,
    columns,
    at,
    count,
    rowLabels: labels(rows),
    columnLabels: labels(columns),
    hasFew: cells.some((n) => n > 0 && n < kFewSequences) && cells.some((n) => n >= kFewSequences),
    hasNone: cells.includes(0),
  };
}

// Returns the text on the sequences of a cell of a mean; null of another map.
function countText(map, row, column) {
  const n = map.count?.(row, column);
  return n === undefined ? null : n === 0 ? "no sequence has both" : `mean of ${counted(n, "sequence")}`;
}

// Returns what a reader must know of maps that are weighted by values and of means over sequences of different lengths, each
// shown while there are any.
function mapNotes() {
  const weighted = note(
    "Weighted by values: attention times the length of the vector that the head adds for the key, its value after the output projection, divided by the sum of the row: α‖f(x)‖ / Σ α‖f(x)‖ (Kobayashi et al. 2020). A key with a short vector adds little, however much attention it gets.",
  );
  const means = note(
    "Sequences differ in length. Each cell is the mean over the sequences that have its query and its key, so rows need not sum to 1.",
  );
  means.classList.add("means");
  subscribe(["source", "example", "byValues"], () => {
    weighted.hidden = !isWeighted();
    means.hidden = !isMean() || !lengthsVary();
  });
  return [weighted, means];
}
