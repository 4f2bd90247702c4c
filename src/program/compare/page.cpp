#include "program/compare/page.h"

#include <algorithm>

#include "inspect/report/page.h"
#include "thimble/inspect/scores.h"

namespace thimble {

namespace {

constexpr std::size_t kByteBudget = 3 << 20;  // of packed attention, in all

// Returns how many examples of each pair of models fit into the budget, at least one.
std::size_t examples_of(const Comparison& comparison) {
  std::size_t bytes = 1;
  for (const ComparedHeads& compared : comparison.heads)
    if (!compared.heads.examples.empty()) {
      const auto& [first, second] = compared.heads.examples.front();
      bytes += (first.attention.size() + second.attention.size()) * 4 / 3;
    }
  return std::max<std::size_t>(1, kByteBudget / bytes);
}

}  // namespace

std::string compare_page(const Comparison& comparison) {
  Json report = to_json(comparison);
  report["has_sweep"] = comparison.has_sweep;
  report["score_table"] = score_table();
  for (const ModelConfig& model : comparison.models)
    report["layers"].push_back(to_json(attention_layers(model)));
  const std::size_t count = examples_of(comparison);
  for (std::size_t i = 0; i < comparison.heads.size(); ++i) {
    const ComparedHeads& compared = comparison.heads[i];
    Json& examples = report["heads"][i]["examples"] = Json::array();
    for (std::size_t k = 0; k < std::min(count, compared.heads.examples.size()); ++k) {
      const auto& [first, second] = compared.heads.examples[k];
      examples.push_back({page::packed_trace(first, comparison.models[0], comparison.tokens, 1),
                          page::packed_trace(second, comparison.models[compared.run], comparison.tokens, 1)});
    }
  }
  return page::document("compare", report, page::compare_script());
}

}  // namespace thimble
