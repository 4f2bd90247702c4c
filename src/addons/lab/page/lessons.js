// Four lessons of five steps, on what docs/class.md teaches. A step has `ask`, a question; `task`, the one action that it
// waits for, in the element `wanted`; and seen(before), which returns "" until the action is done, and then one sentence.
import { grouped, percent, shorter, state } from "lab:report";
import configs from "lab:configs";
import { changed } from "./document.js";
import { heads, selected } from "./names.js";
import { patternOf, scoreOf } from "./timeline.js";

// Returns a config of configs/ with other values.
const withValues = (name, values) => Object.entries(values).reduce((text, [key, value]) => changed(text, key, value), configs[name]);

const accuracy = () => state.curves.train.last?.[2] ?? 0;
const weight = (head, row, column) => state.trace.attention[head.layer][head.head][row]?.[column];
const isIdle = () => state.phase !== "training";

// Returns the share of the positions with an answer that are right, waiting for as much accuracy as is wanted.
const trainedTo = (wanted, then) => () => {
  const enough = accuracy() >= wanted || state.phase === "finished";
  return enough && state.step > 0 ? then({ step: grouped(state.step), accuracy: percent(accuracy()) }) : "";
};

// Waits for the effect of ablating one more head; `isWanted`, if given, says of which.
const effectOf =
  (then, isWanted = () => true) =>
  (before) => {
    const { effect } = state;
    const { ablate } = state.interventions;
    if (!effect || ablate.length <= before.interventions.ablate.length || !isWanted(ablate.at(-1)) || !isIdle()) return "";
    const { accuracy: from } = effect.baseline;
    const change = effect.zero.accuracy_change;
    return then({ heads: ablate.join(" and "), from: percent(from), to: percent(from + change), points: shorter(-100 * change, 1) });
  };

// Returns the head of a layer with the highest score.
const bestOf = (layer, score) => {
  const value = (head) => scoreOf(head, score)?.value ?? 0;
  return heads()
    .filter((head) => head.place === layer)
    .reduce((best, head) => (value(head) > value(best) ? head : best));
};

// Waits for the head with the highest score among the heads of a layer.
const foundHead = (layer, score, then) => (before) => {
  const head = selected();
  if (state.picked === before.picked || head?.place !== layer || head !== bestOf(layer, score) || !isIdle()) return "";
  const found = scoreOf(head, score);
  if (!found) return "";
  const formed = patternOf(head)?.score === score ? patternOf(head).formed : undefined;
  const when = formed === undefined ? "" : `, and it was half of the way there at step ${grouped(formed)}`;
  return then({ head: head.name, share: `${percent(found.value)} (chance ${percent(found.chance)})`, when });
};

// Returns the mean attention of a head, in a trace, on what followed earlier occurrences of the token at each position.
const onSuccessor = (head, { tokens, attention }) => {
  const rows = tokens.map((token, query) => tokens.slice(0, query).flatMap((other, key) => (other === token ? [key + 1] : [])));
  const sums = rows.flatMap((keys, query) =>
    keys.length ? [keys.reduce((sum, key) => sum + attention[head.layer][head.head][query][key], 0)] : [],
  );
  return sums.length ? sums.reduce((a, b) => a + b) / sums.length : null;
};

const reverse = {
  title: "Reverse: one head",
  config: () => withValues("reverse.yaml", { "train.evaluate_every": 100, "train.log_heads": true, "train.target": { accuracy: 0.999 } }),
  steps: [
    {
      ask: "The model is to write its input backwards. Which input does output 0 need?",
      task: "Point at the cell of the map that a perfect head would fill in row 0.",
      wanted: "#map",
      seen: () => {
        const { row, column } = state.cell ?? {};
        const size = state.trace.tokens.length;
        if (row !== 0 || column !== size - 1) return "";
        return `Output 0 is input ${size - 1}. Before training this weight is ${percent(weight(selected(), 0, size - 1))}; uniform attention would give ${percent(1 / size)}.`;
      },
    },
    {
      ask: "What will the map look like when the model can do it?",
      task: "Press Train, and wait until 99 % are right.",
      wanted: "#train",
      seen: trainedTo(0.99, (n) => `${n.accuracy} right after ${n.step} steps: the map has become the anti-diagonal.`),
    },
    {
      ask: "Did the head form slowly, or at once?",
      task: "Move the slider “training so far” back to an earlier step.",
      wanted: "#past",
      seen: () => {
        if (state.at === null || state.at >= state.step) return "";
        const size = state.trace.tokens.length;
        const mean = Array.from({ length: size }, (_, i) => weight(selected(), i, size - 1 - i)).reduce((a, b) => a + b, 0) / size;
        const formed = patternOf(selected())?.formed;
        return `At step ${grouped(state.at)} the mirrored key had ${percent(mean)} of the attention here${formed === undefined ? "" : `; the head was half of the way there at step ${grouped(formed)}`}.`;
      },
    },
    {
      ask: "A map is not yet a proof. Does the model use this head?",
      task: "Go back to now, pause, and ablate the head.",
      wanted: "#ablate",
      seen: effectOf((n) => `Without the head, accuracy falls from ${n.from} to ${n.to}: the model depends on it.`),
    },
    {
      ask: "Output 0 copies what its row attends to. Can you make it say something else?",
      task: "End the ablation, open “Change a row of attention by hand” and move the weight of query 0 to another key.",
      wanted: "#row-editor",
      seen: () => {
        const { rows, ablate } = state.interventions;
        if (!rows.length || ablate.length) return "";
        const { query } = rows[0];
        const [was, is] = [state.plain.predictions[query], state.trace.predictions[query]];
        return was === is ? "" : `Output ${query} was ${was} and is now ${is}: the head decides which token is written.`;
      },
    },
  ],
};

const sort = {
  title: "Sort: many heads",
  config: () => withValues("sort.yaml", { "train.log_heads": true }),
  steps: [
    {
      ask: "The model reads six digits and continues with the same digits in order. May it look ahead?",
      task: "Point at a cell above the diagonal of the map.",
      wanted: "#map",
      seen: () => {
        const { row, column } = state.cell ?? {};
        if (!(column > row)) return "";
        return `Query ${row} may not attend to key ${column}: it is masked, or the model could read its own answer.`;
      },
    },
    {
      ask: "Chance is about one in three. How fast does it learn?",
      task: "Press Train, and wait until 95 % are right.",
      wanted: "#train",
      seen: trainedTo(0.95, (n) => `${n.accuracy} right at step ${n.step}, with chance at ${percent(state.model.chance)}.`),
    },
    {
      ask: "Does it sort digits that you choose?",
      task: "Type six digits, 0, 1 or 2, with spaces, into the input and press Enter.",
      wanted: "#input",
      seen: (before) => {
        if (state.input === before.input || state.expected !== null || state.trace.tokens.length < 6) return "";
        const digits = state.trace.tokens.slice(0, 6);
        return `After ${digits.join(" ")} it writes ${state.trace.predictions[5]}; the smallest of them is ${[...digits].sort()[0]}.`;
      },
    },
    {
      ask: "Nine heads: does every one matter?",
      task: "Pause, choose a head and ablate it.",
      wanted: "#ablate",
      seen: effectOf((n) => `Without head ${n.heads}, accuracy goes from ${n.from} to ${n.to}.`),
    },
    {
      ask: "Does another head stand in for it?",
      task: "Choose a second head and ablate it as well.",
      wanted: "#ablate",
      seen: effectOf(
        (n) =>
          `Without heads ${n.heads} it is ${n.to}, ${n.points} points less than with both. Is that more than each of them costs alone? Then one stands in for the other.`,
      ),
    },
  ],
};

const induction = {
  title: "Induction: two layers",
  config: () =>
    withValues("induction_lengths.yaml", { "data.validation": 200, "train.evaluate_every": 100, "train.target": { accuracy: 0.47 } }),
  steps: [
    {
      ask: "A random sequence occurs twice: 7 2 9 4 7 2 _. What comes next, and how did you find it?",
      task: "Choose a head of layer 1.",
      wanted: ".tiles",
      seen: (before) => {
        if (selected()?.place !== "1" || state.picked === before.picked) return "";
        return "You looked for the 2 before and took what followed, 9. This head does not: it is untrained.";
      },
    },
    {
      ask: "Nobody tells the model that rule. Can it find it? The first half of a sequence can only be guessed, so about half is the most.",
      task: "Press Train, and wait until the target is reached: 47 % of validation tokens right.",
      wanted: "#train",
      seen: () => {
        const [step, , right] = state.curves.validation.last ?? [];
        return state.phase === "finished" && right !== undefined
          ? `${percent(right)} right at step ${grouped(step)}; chance is ${percent(state.model.chance)}.`
          : "";
      },
    },
    {
      ask: "To find the position after a 2, a position must know the token before it. Which head tells it?",
      task: "Choose the head of layer 0 that attends to the previous token.",
      wanted: ".tiles",
      seen: foundHead("0", "previous_token", (n) => `${n.head} puts ${n.share} of its attention on the previous token${n.when}.`),
    },
    {
      ask: "Which head uses that?",
      task: "Choose the head of layer 1 with the clearest induction pattern.",
      wanted: ".tiles",
      seen: foundHead("1", "induction", (n) => `${n.head} puts ${n.share} of its attention on the token that followed last time${n.when}.`),
    },
    {
      ask: "Does the induction head need the previous-token head?",
      task: "Ablate the head of layer 0 that attends most to the previous token.",
      wanted: "#ablate",
      seen: effectOf(
        (n) => {
          const head = bestOf("1", "induction");
          const [before, now] = [state.plain, state.trace].map((trace) => onSuccessor(head, trace));
          const share =
            before === null
              ? ""
              : ` On this input, ${head.name} puts ${percent(now)} of its attention on what followed last time; before it was ${percent(before)}.`;
          return `Without head ${n.heads}, accuracy goes from ${n.from} to ${n.to}.${share}`;
        },
        (id) => id === bestOf("0", "previous_token").id,
      ),
    },
  ],
};

const translation = {
  title: "Translation: alignment",
  config: () => withValues("translation.yaml", { "train.log_heads": true }),
  steps: [
    {
      ask: "An English word needs the French word that it translates. Where can it look?",
      task: "Choose a head of cross-attention.",
      wanted: ".tiles",
      seen: (before) => {
        if (!selected()?.attention.cross || state.picked === before.picked) return "";
        const [rows, columns] = [state.trace.tokens.length, state.trace.source.length];
        return `Rows are ${rows} English tokens, columns ${columns} French ones; before training no word is aligned.`;
      },
    },
    {
      ask: "The model only reads pairs of sentences. Will it find out which words belong together?",
      task: "Press Train, and wait until 97 % are right.",
      wanted: "#train",
      seen: trainedTo(0.97, (n) => `${n.accuracy} of the words are right at step ${n.step}.`),
    },
    {
      ask: "Which head aligns the words?",
      task: "Pause, and choose the head of cross-attention that attends most to the translated word.",
      wanted: ".tiles",
      seen: foundHead(
        "cross.0",
        "task_target",
        (n) => `${n.head} puts ${n.share} of its attention on the word that is translated${n.when}.`,
      ),
    },
    {
      ask: "French puts most adjectives behind the noun. What does the map do there?",
      task: "Press Another until the source has an adjective such as noir or blanc, and read the map.",
      wanted: "#another",
      seen: (before) => {
        if (state.input === before.input || state.trace.of.input !== state.input) return "";
        return `“${state.input}” became “${state.trace.predictions.filter((t) => !t.startsWith("<")).join(" ")}”: where the order of words differs, the map leaves the diagonal.`;
      },
    },
    {
      ask: "Is the alignment needed?",
      task: "Ablate the head.",
      wanted: "#ablate",
      seen: effectOf((n) => `Without head ${n.heads}, accuracy goes from ${n.from} to ${n.to}.`),
    },
  ],
};

export const kLessons = { reverse, sort, induction, translation };
