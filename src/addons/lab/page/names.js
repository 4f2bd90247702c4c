// Names of heads and tokens.
import { state } from "lab:report";

/** Returns the heads of the open model in order: [{layer, head, place, id, name, attention}], `id` as on the command line. */
export const heads = () => state.model?.heads ?? [];

/** Returns the selected head, or undefined without attention. */
export const selected = () => heads()[state.head];

/** Returns the heads of a model's attentions, [{name, heads, queries, keys, causal}]. */
export function headList(attentions) {
  return attentions.flatMap((attention, layer) =>
    Array.from({ length: attention.heads }, (_, head) => {
      const place = attention.title.startsWith("layer ") ? attention.title.slice(6) : attention.name;
      return { layer, head, attention, place, id: `${place}.${head}`, name: `head ${place}.${head}` };
    }),
  );
}

/** Returns the name of a score for people. */
export const scoreName = (name) => state.scores.find((score) => score.name === name)?.title ?? name;

/** Returns a count with its noun. */
export const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
