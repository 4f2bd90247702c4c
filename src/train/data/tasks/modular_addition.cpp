#include "thimble/train/task.h"

namespace thimble::tasks::modular_addition {
namespace {

void at(const TaskConfig& config, std::int64_t index, Example& example) {
  const std::int64_t a = index / config.symbols, b = index % config.symbols;
  example.input.assign({static_cast<std::int32_t>(a), static_cast<std::int32_t>(b),
                        static_cast<std::int32_t>(config.symbols)});
  example.target.assign(1, static_cast<std::int32_t>((a + b) % config.symbols));
}

std::vector<std::string> tokens(const TaskConfig& config) {
  std::vector<std::string> names = number_tokens(config);
  names.push_back("=");
  return names;
}

ExampleSize size(const TaskConfig&) { return {3, 1}; }

double distinct_inputs(const TaskConfig& config) {
  return static_cast<double>(config.symbols) * static_cast<double>(config.symbols);
}

void relevant(const TaskConfig&, const Example&, std::size_t, std::vector<Relevant>& keys) {
  keys.insert(keys.end(), {{0}, {1}});
}

}  // namespace

Task task() {
  return {.summary = "a + b modulo a number",
          .definition =
              "The input is a, b and `=`, the answer a + b modulo p, where p is `symbols` and a and b are "
              "0 to p-1. There are p^2 inputs; a seeded permutation of them is cut into train, validation "
              "and test, so data.train decides whether a model memorizes or, long after it fits the "
              "training pairs, generalizes (grokking). Power et al. 2022, Grokking; Nanda et al. 2023, "
              "Progress measures for grokking via mechanistic interpretability.",
          .keys = {"symbols"},
          .tokens = tokens,
          .size = size,
          .at = at,
          .distinct_inputs = distinct_inputs,
          .chance = one_in_symbols,
          .special = {"="},
          .relevant = relevant,
          .kinds = {"operand"}};
}

}  // namespace thimble::tasks::modular_addition
