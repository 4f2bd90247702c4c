// The area of heads: the input and the answer, maps, the formula, interventions, the training that has been.
import { element } from "lab:report";
import { answer } from "./answer.js";
import { formula } from "./formula.js";
import { ablation, interventions } from "./interventions.js";
import { largeMap, tiles } from "./maps.js";
import { slider } from "./timeline.js";

/** Returns the area of heads. */
export function headsArea() {
  const large = largeMap();
  const ablate = ablation();
  return element(
    "section",
    { id: "heads", class: "panel", "aria-labelledby": "heads-title" },
    element("h2", { id: "heads-title" }, "Attention heads"),
    answer(),
    slider(),
    tiles(),
    element("div", { class: "row head-row" }, large.heading, ablate.node),
    ablate.result,
    element(
      "div",
      { class: "explore" },
      element("div", { class: "stack" }, large.node, large.below),
      element("div", { class: "stack" }, formula(), interventions()),
    ),
  );
}
