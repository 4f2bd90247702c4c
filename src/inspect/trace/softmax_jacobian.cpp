#include "inspect/trace/softmax_jacobian.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "thimble/inspect/forward_trace.h"
#include "thimble/train/run.h"

namespace thimble {

namespace {

// Returns the norm of diag(p) - p p^T: the square root of sum p_i^2 (1 - p_i)^2 + sum_{i != j} p_i^2 p_j^2.
double jacobian_norm(std::span<const double> p) {
  double squares = 0, cubes = 0;
  for (const double x : p) {
    squares += x * x;
    cubes += x * x * x;
  }
  return std::sqrt(std::max(0.0, squares - 2 * cubes + squares * squares));
}

double mean_jacobian(const ModelSource& model, std::int64_t sequences,
                     std::optional<std::uint64_t> untrained) {
  const std::vector<AttentionLayer> layers = attention_layers(model.config.model);
  double sum = 0, count = 0;
  trace_split(model, Split::test, sequences,
              [&](const ForwardTrace& trace) {
                std::span<const double> rest = trace.attention;
                for (const AttentionLayer& layer : layers)
                  for (std::int64_t row = 0; row < layer.heads * trace.queries(layer); ++row) {
                    const auto keys = static_cast<std::size_t>(trace.keys(layer));
                    sum += jacobian_norm(rest.first(keys));
                    ++count;
                    rest = rest.subspan(keys);
                  }
              },
              {.untrained = untrained, .logits = false});
  return sum / count;
}

}  // namespace

Json softmax_jacobian(const ModelSource& model, std::int64_t sequences) {
  return {{"at_init", mean_jacobian(model, sequences, model.config.train.seed)},
          {"trained", mean_jacobian(model, sequences, std::nullopt)}};
}

}  // namespace thimble
