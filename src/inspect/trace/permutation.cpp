#include "inspect/trace/permutation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "thimble/engine/random.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/files/progress.h"

namespace thimble {

std::vector<std::size_t> random_order(std::size_t count, std::uint64_t number) {
  const Random random(0, Stream::inspect);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i, number, static_cast<std::uint32_t>(i))]);
  return order;
}

PermutationReport measure_permutation(const ModelSource& model, std::int64_t sequences) {
  const Names names = vocabulary(model);
  PermutationReport report;
  ProgressCounter progress("permuting inputs", static_cast<double>(sequences));
  trace_split(model, Split::test, sequences, [&](const ForwardTrace& original) {
    const auto order = random_order(original.tokens.size(), static_cast<std::uint64_t>(report.sequences++));
    std::string text;
    for (const std::size_t from : order) text += names[static_cast<std::size_t>(original.tokens[from])] + ' ';
    const ForwardTrace permuted = trace_input(model, text);
    const std::size_t rows = original.predictions.size(), width = original.logits.size() / rows;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t v = 0; v < width; ++v) {
        const double before = original.logits[(rows == 1 ? 0 : order[row]) * width + v];
        report.logit = std::max(report.logit, std::abs(before));
        report.worst = std::max(report.worst, std::abs(permuted.logits[row * width + v] - before));
      }
    progress.advance();
  });
  return report;
}

Json to_json(const PermutationReport& report) {
  return {{"sequences", report.sequences},
          {"worst", report.worst},
          {"logit", report.logit},
          {"relative", report.relative()}};
}

}  // namespace thimble
