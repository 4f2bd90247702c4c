#include "thimble/inspect/cells.h"

namespace thimble {

CellEffect compare_cells(const EvalResult& whole, const EvalResult& mean, const EvalResult& alone,
                         const HeadVerdict& verdict, const EffectScale& scale) {
  // Counts every answer twice, so that alone - (whole + mean) / 2 is a change between two results.
  std::vector<SequenceResult> both, twice;
  for (std::size_t i = 0; i < whole.per_sequence.size(); ++i) {
    const SequenceResult &w = whole.per_sequence[i], &m = mean.per_sequence[i], &k = alone.per_sequence[i];
    both.push_back({0, 2 * w.labeled, w.correct + m.correct, w.capped_loss + m.capped_loss});
    twice.push_back({0, 2 * k.labeled, 2 * k.correct, 2 * k.capped_loss});
  }
  AnswerBounds bounds = scale.bounds;
  bounds.most_labels *= 2;
  const BoundedChanges changes = bounded_changes(both, twice, bounds);
  CellEffect out;
  out.in_loss = verdict.in_loss;
  const auto measured = [&](const EvalResult& result) {
    return out.in_loss ? loss_of(result) : result.accuracy;
  };
  out.whole = measured(whole);
  out.mean = measured(mean);
  out.alone = measured(alone);
  const BoundedMean& change = out.in_loss ? changes.capped_loss : changes.accuracy;
  out.interval = change.interval();
  out.p = change.p();
  const Effect of_mean = effect_between(whole.per_sequence, mean.per_sequence, scale.bounds);
  const bool gains = verdict.is_rise() ? out.mean >= out.whole : out.mean <= out.whole;
  if (gains || judge_heads({&of_mean, 1}, scale)[0].verdict == Verdict::unused)
    out.carried = Carried::constant;
  else if (verdict.is_rise() ? out.interval.low > 0 : out.interval.high < 0)
    out.carried = Carried::yes;
  else if (verdict.is_rise() ? out.interval.high < 0 : out.interval.low > 0)
    out.carried = Carried::no;
  return out;
}

Json to_json(const CellEffect& cells) {
  constexpr std::string_view kNames[] = {"yes", "no", "open", "constant"};  // by Carried
  return {{"pattern", cells.pattern.name},
          {"carried", kNames[static_cast<std::size_t>(cells.carried)]},
          {"measure", cells.in_loss ? "capped_loss" : "accuracy"},
          {"whole", cells.whole},
          {"mean", cells.mean},
          {"alone", cells.alone},
          {"interval", to_json(cells.interval)},
          {"without", cells.without}};
}

}  // namespace thimble
