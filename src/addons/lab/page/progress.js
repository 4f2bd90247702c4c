// What training has reported so far: curves of means, and scores of heads.

const kPoints = 480; // of a curve

/** A curve: `points`, [[step, loss, accuracy, count]], are means of buckets of `width` steps, each at its last step; `last` is the newest report. */
export const kNoCurve = { width: 1, points: [], last: null };

// Joins points of the same bucket, of `width` steps.
function joined(points, width) {
  const buckets = [];
  const of = (step) => Math.floor((step - 1) / width);
  for (const point of points) {
    const before = buckets.at(-1);
    if (!before || of(before[0]) !== of(point[0])) {
      buckets.push(point);
      continue;
    }
    const count = before[3] + point[3];
    const mean = (i) => (before[i] * before[3] + point[i] * point[3]) / count;
    buckets[buckets.length - 1] = [point[0], mean(1), mean(2), count];
  }
  return buckets;
}

/** Returns the curve with further reports, [{step, loss, accuracy}]. Buckets become twice as wide when there are too many. */
export function extended(curve, reports) {
  let { width } = curve;
  const added = reports.map(({ step, loss, accuracy }) => [step, loss, accuracy, 1]);
  let points = joined([...curve.points, ...added], width);
  while (points.length > kPoints) {
    width *= 2;
    points = joined(points, width);
  }
  return { width, points, last: added.at(-1) ?? curve.last };
}

// Returns the mean of the present rate and the ones before, the newest counting most.
function smooth(before, rate) {
  if (!before) return rate;
  const mean = (key) => 0.8 * before[key] + 0.2 * rate[key];
  return { steps: mean("steps"), sequences: mean("sequences") };
}

/** Returns what changes in the state, {curves, snapshots, rate}, by an answer of `step`. */
export function take(state, { step, reports, validations, heads, stopped = "", seconds, sequences }) {
  const { curves, snapshots, rate } = state;
  const isTimed = seconds > 0 && reports.length > 0;
  return {
    curves: { train: extended(curves.train, reports), validation: extended(curves.validation, validations) },
    snapshots: [...snapshots, ...heads],
    rate: isTimed ? smooth(rate, { steps: reports.length / seconds, sequences: sequences / seconds }) : rate,
    step,
    stopped,
  };
}

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

// Returns whether a line of metrics can be shown. Lines of other kinds are not.
function isWhole(line) {
  if (line === null || typeof line !== "object" || !Number.isInteger(line.step)) return false;
  if (line.split === "heads") return Array.isArray(line.heads);
  return !["train", "validation"].includes(line.split) || (isNumber(line.loss) && isNumber(line.accuracy));
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/**
 * Returns the curves and the scores of heads of a run's metrics.jsonl up to a step, without lines that are incomplete or
 * damaged, of which the engine warns.
 */
export function past(text, step) {
  const lines = text.split("\n").map(parsed).filter(isWhole);
  const of = (split) => lines.filter((line) => line.split === split && line.step <= step);
  const curve = (split) => extended(kNoCurve, of(split));
  return { curves: { train: curve("train"), validation: curve("validation") }, snapshots: of("heads") };
}
