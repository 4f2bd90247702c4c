// One sequence token by token: the prediction at each position, and the attention of a query on its keys.

// A model predicts a token per position or one per sequence; the target of a position without a label is null.
const perPosition = (e) => e.predictions?.length === e.tokens.length;
const labeled = (e) =>
  (e.targets ?? [])
    .map((target, i) => ({ target, prediction: e.predictions?.[i] }))
    .filter(({ target }, i) => target !== null && target !== undefined && !e.guessed?.[i]);
const wrongIn = (e) => labeled(e).filter(({ target, prediction }) => target !== prediction).length;

const guessedReason = (e) => e.guessed_reason ?? report.baseline?.knowable?.reason ?? "";

const word = (token) => element("bdi", { class: "token", title: harmless(String(token)) }, clipped(token, 16));

// Returns a prediction, with a tick, or with a cross and the target; the prediction alone where targets are unknown.
function prediction(e, i) {
  const shown = word(e.predictions[i]);
  const target = e.targets?.[i];
  if (e.targets && (target === null || target === undefined)) return element("span", { class: "prediction none" }, "\u00a0");
  if (e.guessed?.[i]) return element("span", { class: "prediction", title: `not to be known: ${guessedReason(e)}` }, "(", shown, ")");
  if (!e.targets) return element("span", { class: "prediction" }, shown);
  if (target === e.predictions[i]) return element("span", { class: "prediction" }, element("span", {}, "✓ ", shown));
  const missed = element("small", {}, "target ", word(target));
  return element("span", { class: "prediction wrong" }, element("span", {}, "✗ ", shown), missed);
}

function summary(e, perQuery) {
  const [count, wrong] = [labeled(e).length, wrongIn(e)];
  const known = e.guessed?.includes(true) ? " of what can be known" : "";
  const guesses = known && `; in parentheses: ${guessedReason(e)}`;
  const name = capital(exampleName(state.example)) + (e.finished === false ? ", its output cut at the longest …" : "");
  const result = (...content) => element("p", { class: "result" }, ...content);
  const below = ". Below each query: the prediction at that position";
  if (!e.targets && perQuery) return result(`${name}${below}${guesses}.`);
  if (!e.targets) return result(`${name}. Prediction:`, ...e.predictions.flatMap((token) => [" ", word(token)]), ".");
  if (!count) return result(`${name}.`);
  if (!perPosition(e) && count === 1) return result(`${name}. Prediction: `, prediction(e, 0), ".");
  const several = wrong ? `${wrong} of ${count} predictions${known} are wrong` : `all ${count} predictions${known} are correct`;
  const text = count === 1 ? `the prediction is ${wrong ? "wrong" : "correct"}` : several;
  const verdict = element("b", { class: wrong ? "wrong" : "" }, `${wrong ? "✗" : "✓"} `, text);
  return result(`${name}: `, verdict, perQuery ? below : "", perQuery ? guesses : "", ".");
}

// Returns the text color for a background: black or white, by relative luminance (WCAG 2).
function inkOn(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000" : "#fff";
}

// Returns the view of one query: its attention on each key. A click or the arrow keys select the query.
function tokenView() {
  const about = element("div");
  const queries = element("div", { class: "strip", role: "group", "aria-label": "queries" });
  const keys = element("div", { class: "strip keys", role: "group", "aria-label": "keys of the query" });
  const heading = element("h4", { "aria-live": "polite" });

  queries.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    update({ query: Math.min(Math.max(state.query + step, 0), queries.children.length - 1) });
    queries.children[state.query].focus();
  });

  subscribe(["head", "source", "example"], () => {
    const map = attention(state.head);
    const e = state.source === "example" ? example() : null;
    const predicts = e && attentionLayer(report.heads[state.head].layer).queries === "tokens" && perPosition(e);
    const positionsText = `Positions, ${meanName(report.heads[state.head].layer)}.`;
    about.replaceChildren(e ? summary(e, predicts) : element("p", { class: "result" }, positionsText));
    const chips = map.rowLabels.map((token, i) => {
      const at = element("small", {}, e ? String(i) : "\u00a0");
      return element("button", { class: "chip", click: () => update({ query: i }) }, at, word(token), predicts ? prediction(e, i) : null);
    });
    queries.replaceChildren(...chips);
  });
  subscribe(["head", "source", "example", "byValues", "query", "full", "theme"], () => {
    const map = attention(state.head);
    const at = attentionLayer(report.heads[state.head].layer);
    const query = Math.min(state.query, map.rows - 1);
    [...queries.children].forEach((chip, i) => {
      chip.setAttribute("aria-pressed", String(i === query));
      chip.tabIndex = i === query ? 0 : -1;
    });
    heading.replaceChildren(
      state.source === "example" ? `Query ${query} ` : "Query at position ",
      word(map.rowLabels[query]),
      " attends to",
      at.queries === at.keys ? "" : ", in the source",
      isWeighted() ? ", weighted by values" : "",
      map.causal ? " (hatched: masked)" : "",
    );
    const chips = map.columnLabels.map((token, c) => {
      const weight = map.at(query, c);
      const exact = [map.count?.(query, c) === 0 ? null : precisely(weight, map.step), countText(map, query, c)].filter(Boolean);
      const chip = element(
        "span",
        { class: weight === null ? "chip hidden" : "chip", "data-weight": weight ?? "masked" },
        element("small", {}, state.source === "example" ? String(c) : "\u00a0"),
        word(token),
        element("span", { class: "weight" }, weight === null ? "–" : weight < 0.005 ? "0" : weight.toFixed(2).replace(/^0/, "")),
      );
      chip.title = `key ${map.count ? token : c}: ${exact.join(", ")}`;
      if (weight !== null) {
        const rgb = color(weight, map.full, false);
        chip.style.backgroundColor = `rgb(${rgb.join(" ")})`;
        chip.style.color = inkOn(rgb);
      }
      return chip;
    });
    keys.replaceChildren(...chips);
  });
  return panel("Token to token", about, queries, heading, keys);
}
