#include "inspect/effects/effect_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/core/portable_math.h"
#include "thimble/engine/random.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns how often each label is among the selected sequences.
std::vector<double> label_counts(const Evaluator& evaluator) {
  std::vector<double> counts(static_cast<std::size_t>(evaluator.dataset().outputs()));
  for (const Chunk& chunk : evaluator.chunks())
    for (const std::int32_t label : chunk.batch.row_labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

// Returns the results of the best constant answer: the accuracy of the most frequent label, and the loss of
// the distribution of labels.
std::vector<SequenceResult> constant_answer(const Evaluator& evaluator) {
  const std::vector<double> counts = label_counts(evaluator);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  std::vector<double> right = counts;
  const Dataset& data = evaluator.dataset();
  if (const std::int32_t unknown = data.output_of(data.unknown_token()); unknown != kIgnore)
    right[static_cast<std::size_t>(unknown)] = 0;
  const auto usual = static_cast<std::int32_t>(std::ranges::max_element(right) - right.begin());
  std::vector<SequenceResult> results(static_cast<std::size_t>(evaluator.sequences()));
  for (const Chunk& chunk : evaluator.chunks()) {
    const Batch& batch = chunk.batch;
    const std::int64_t of_sequence = std::ssize(batch.labels) / batch.sequences;
    for (std::size_t row = 0; row < batch.row_labels.size(); ++row) {
      const std::int32_t label = batch.row_labels[row];
      SequenceResult& result = results[static_cast<std::size_t>(chunk.first + batch.rows[row] / of_sequence)];
      const double loss = portable::log(all / counts[static_cast<std::size_t>(label)]);
      result.loss += loss;
      result.capped_loss += std::min(loss, evaluator.loss_cap());
      result.correct += label == usual;
      ++result.labeled;
    }
  }
  return results;
}

// Sets the rounding errors: the mean over labels of the absolute move of each sequence, in the worse pass.
void measure_rounding(Evaluator& evaluator, const EvalResult& baseline, EffectScale& scale) {
  for (std::uint32_t pass = 0; pass < kRoundingPasses; ++pass) {
    const EvalResult moved =
        evaluator.run([&] { return rounding_hooks(evaluator.config().train.seed, pass); });
    double loss = 0, accuracy = 0, labels = 0;
    for (std::size_t i = 0; i < moved.per_sequence.size(); ++i) {
      const SequenceResult &before = baseline.per_sequence[i], &after = moved.per_sequence[i];
      loss += std::abs(after.loss - before.loss);
      accuracy += static_cast<double>(std::abs(after.correct - before.correct));
      labels += static_cast<double>(before.labeled);
    }
    scale.rounding_loss = std::max(scale.rounding_loss, loss / std::max(1.0, labels));
    scale.rounding_accuracy = std::max(scale.rounding_accuracy, accuracy / std::max(1.0, labels));
  }
}

void measure_untrained(Evaluator& evaluator, EffectScale& scale) {
  Model& model = evaluator.model();
  const std::span<Real> values = model.parameters().values();
  const std::vector<Real> trained(values.begin(), values.end());
  std::vector<double> accuracies, losses;
  for (std::uint64_t k = 1; k <= kUntrainedModels; ++k) {
    model.init(evaluator.config().train.seed + k);
    const EvalResult result = evaluator.run();
    accuracies.push_back(result.accuracy);
    losses.push_back(result.loss);
  }
  std::ranges::copy(trained, values.begin());
  scale.untrained_accuracy = spread(accuracies);
  scale.untrained_loss = spread(losses);
}

}  // namespace

AnswerBounds bound_answers(Evaluator& evaluator) {
  const std::vector<double> counts = label_counts(evaluator);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  double entropy = 0;
  for (const double count : counts)
    if (count > 0) entropy += count / all * portable::log(all / count);
  evaluator.cap_loss(entropy);
  AnswerBounds bounds{entropy, static_cast<double>(evaluator.most_labels())};
  if (const EqualInputs& equal = evaluator.equal_inputs(); equal.labels.size() < equal.of.size())
    bounds.draws = equal.of;
  return bounds;
}

EffectScale measure_scale(Evaluator& evaluator, const EvalResult& baseline, const AnswerBounds& bounds,
                          double smallest_effect) {
  const std::vector<SequenceResult> constant = constant_answer(evaluator);
  double labels = 0, loss = 0, correct = 0;
  for (const SequenceResult& sequence : constant) {
    labels += static_cast<double>(sequence.labeled);
    loss += sequence.loss;
    correct += static_cast<double>(sequence.correct);
  }
  labels = std::max(1.0, labels);
  EffectScale scale;
  scale.chance_accuracy = correct / labels;
  scale.chance_loss = loss / labels;
  scale.lowest_loss = lowest_loss(evaluator.dataset(), evaluator.split());
  scale.smallest_accuracy = smallest_effect * (1 - scale.chance_accuracy);
  scale.smallest_loss = smallest_effect * std::max(0.0, scale.chance_loss - scale.lowest_loss.value_or(0));
  measure_rounding(evaluator, baseline, scale);
  measure_untrained(evaluator, scale);
  scale.bounds = bounds;
  scale.above_chance = effect_between(constant, baseline.per_sequence, bounds);
  scale.at_chance = is_at_chance(scale, baseline);
  return scale;
}

std::unique_ptr<ChunkHooks> rounding_hooks(std::uint64_t seed, std::uint32_t pass) {
  const auto move = [random = Random(seed, Stream::inspect), pass](std::int64_t first, Site site,
                                                                   const Shape&, MatrixView value) {
    constexpr std::uint32_t kNudge = 2;  // resampling pairs use 1
    constexpr std::int64_t kWords = 4, kBits = 32;
    constexpr Real kStep = std::numeric_limits<Real>::epsilon();
    for (std::int64_t row = 0; row < value.rows; ++row) {
      // A draw gives the signs of 128 columns; its counter has the first sequence, the position and the row, and the
      // site and these columns, at distances that keep them apart in all but huge models.
      const std::int64_t at = (first << 24) + (site.position << 12) + row;
      const std::int64_t of_site = (static_cast<std::int64_t>(site.kind) << 16) + site.layer;
      for (std::int64_t begin = 0, draw = 0; begin < value.cols; begin += kWords * kBits, ++draw) {
        const auto words = random.words(static_cast<std::uint64_t>(at),
                                        static_cast<std::uint32_t>(of_site + (draw << 8)), kNudge + pass);
        const std::int64_t columns = std::min(kWords * kBits, value.cols - begin);
        for (std::int64_t c = 0; c < columns; ++c) {
          const bool is_up = (words[static_cast<std::size_t>(c / kBits)] >> (c % kBits) & 1) != 0;
          value.row(row)[begin + c] *= 1 + (is_up ? kStep : -kStep);
        }
      }
    }
    return value.rows;
  };
  return std::make_unique<Replace>([](Site) { return true; }, move);
}

std::optional<bool> is_at_chance(const EffectScale& scale, const EvalResult& baseline) {
  const double usual_luck = kUntrainedDeviations * scale.untrained_accuracy.sd.value_or(0),
               usual_fall = kUntrainedDeviations * scale.untrained_loss.sd.value_or(0);
  const bool more_right = baseline.accuracy > scale.untrained_accuracy.mean + usual_luck,
             less_loss = baseline.loss < scale.untrained_loss.mean - usual_fall;
  const BoundedChange &right = scale.above_chance.accuracy, &loss = scale.above_chance.capped_loss;
  if (!scale.has_smallest() || baseline.labels == 0) return std::nullopt;
  if (!more_right && !less_loss) return true;
  if (more_right && right.interval.low > 0 && right.mean >= scale.smallest_accuracy) return false;
  if (less_loss && loss.interval.high < 0 && -loss.mean >= scale.smallest_loss) return false;
  if (right.interval.high < scale.smallest_accuracy && -loss.interval.low < scale.smallest_loss) return true;
  return std::nullopt;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
