#include "thimble/engine/ops.h"

#include "engine/kernels/cross_entropy.h"
#include "engine/kernels/elementwise.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var cross_entropy(Var logits, std::span<const std::int32_t> labels, const CrossEntropyOptions& options) {
  const std::int64_t rows = logits.shape().rows(), vocabulary = logits.shape().last();
  require<ShapeError>(static_cast<std::int64_t>(labels.size()) == rows,
                      "cross_entropy: {} labels for logits {}, which have {} rows", labels.size(),
                      logits.shape(), rows);
  const auto bad = std::ranges::find_if(labels, [=](auto label) { return label >= vocabulary; });
  require<ShapeError>(bad == labels.end(), "cross_entropy: label {} is outside the vocabulary 0 .. {}",
                      bad == labels.end() ? 0 : *bad, vocabulary - 1);
  const auto labeled = std::ranges::count_if(labels, [](auto label) { return label >= 0; });
  const std::int64_t normalizer =
      options.normalizer > 0 ? options.normalizer : std::max<std::int64_t>(1, labeled);

  const MatrixView dlogits = logits.tape().scratch(rows, vocabulary);
  return record(
      "cross_entropy", {1}, {logits},
      [=, &options](Var loss) {
        *loss.value().data = static_cast<Real>(kernels::cross_entropy_forward(
            dlogits, logits.value(), labels, options.smoothing, Real{1} / static_cast<Real>(normalizer)));
      },
      [=](Var loss) { kernels::scale_backward(logits.grad_accumulator(), dlogits, *loss.grad().data); });
}

std::vector<GradcheckCase> gradcheck_cross_entropy() {
  // 37 rows, as a kernel may process rows in groups.
  static const std::vector<std::int32_t> labels{2, -1, 0, 6, 3, -1}, none(6, -1), many(37, 4);
  const auto entropy = [](const std::vector<std::int32_t>& targets, CrossEntropyOptions options) {
    return [&targets, options](Tape&, Inputs in) { return cross_entropy(in[0], targets, options); };
  };
  return {
      {"cross_entropy", "ignored labels", {normal("logits", {2, 3, 7})}, entropy(labels, {})},
      {"cross_entropy", "smoothing", {normal("logits", {2, 3, 7})}, entropy(labels, {Real(0.2), 0})},
      {"cross_entropy", "sum, 40 classes", {normal("logits", {2, 3, 40})}, entropy(labels, {Real(0.1), 1})},
      {"cross_entropy", "37 rows", {normal("logits", {37, 7})}, entropy(many, {})},
      {"cross_entropy", "no label", {zero_gradient(normal("logits", {6, 7}))}, entropy(none, {})}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
