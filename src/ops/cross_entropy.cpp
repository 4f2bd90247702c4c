#include "thimble/ops/ops.h"

#include "thimble/core/error.h"
#include "thimble/kernels/cross_entropy.h"
#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

Var cross_entropy(Var logits, std::span<const std::int32_t> labels, const CrossEntropyOptions& options) {
  const std::int64_t rows = logits.shape().rows(), vocabulary = logits.shape().last();
  require<ShapeError>(static_cast<std::int64_t>(labels.size()) == rows,
                      "cross_entropy: {} labels for logits {}, which have {} rows", labels.size(),
                      logits.shape(), rows);
  const auto bad = std::ranges::find_if(labels, [=](auto label) { return label >= vocabulary; });
  require<ShapeError>(bad == labels.end(), "cross_entropy: label {} is outside the vocabulary 0 .. {}",
                      bad == labels.end() ? 0 : *bad, vocabulary - 1);
  const auto labelled = std::ranges::count_if(labels, [](auto label) { return label >= 0; });
  const std::int64_t normalizer =
      options.normalizer > 0 ? options.normalizer : std::max<std::int64_t>(1, labelled);

  const MatrixView slope = logits.tape().scratch(rows, vocabulary);
  return record(
      "cross_entropy", {1}, {logits},
      [=, &options](Var loss) {
        *loss.value().data = static_cast<Real>(kernels::cross_entropy_forward(
            slope, logits.value(), labels, options.smoothing, Real{1} / static_cast<Real>(normalizer)));
      },
      [=](Var loss) { kernels::scale_backward(logits.grad_accumulator(), slope, *loss.grad().data); });
}

}  // namespace thimble::inline THIMBLE_PRECISION
