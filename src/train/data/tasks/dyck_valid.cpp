#include <algorithm>

#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::dyck_valid {
namespace {

void check(const TaskConfig& config) {
  require<DataError>(
      config.symbols >= 2,
      "task dyck_valid: symbols 1: must be at least 2, as mistakes close another kind of bracket");
}

// Returns opening brackets, closing brackets and verdicts.
std::vector<std::string> tokens(const TaskConfig& config) {
  const bool few = config.symbols <= 4;
  std::vector<std::string> names = opening_tokens(config);
  for (std::size_t i = 0; i < static_cast<std::size_t>(config.symbols); ++i)
    names.push_back(few ? std::string(1, ")]}>"[i]) : fmt::format("){}", i));
  names.emplace_back("yes");
  names.emplace_back("no");
  return names;
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  const std::int64_t n = sample_length(config, rng), symbols = config.symbols;
  const std::int64_t mistake = rng.below(n + 1);  // n: none
  auto& [input, target, attends] = example;
  input.clear();
  target.clear();  // first the kinds of the open brackets, then the verdicts
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t height = std::ssize(target);
    const bool may_open = height<config.depth, may_close = height> 0;
    if (i != mistake && may_open && (!may_close || rng.below(2) == 0)) {
      target.push_back(static_cast<std::int32_t>(rng.below(symbols)));
      input.push_back(target.back());
      continue;
    }
    std::int64_t kind = may_close ? target.back() : rng.below(symbols);
    if (i == mistake && may_close) kind = (kind + 1 + rng.below(symbols - 1)) % symbols;
    input.push_back(static_cast<std::int32_t>(symbols + kind));
    if (may_close) target.pop_back();
  }
  const auto yes = static_cast<std::int32_t>(2 * symbols);
  target.assign(static_cast<std::size_t>(mistake), yes);
  target.resize(static_cast<std::size_t>(n), yes + 1);
}

// Counts prefixes by how many brackets are open, before the mistake and after it.
double distinct_inputs(const TaskConfig& config) {
  const auto depth = static_cast<std::size_t>(std::min(config.depth, config.length));
  const auto symbols = static_cast<double>(config.symbols);
  std::vector<double> right(depth + 3, 0), wrong = right, right_before, wrong_before;  // [h + 1]: h open
  right[1] = 1;
  double count = 0;
  for (std::int64_t n = 1; n <= config.length; ++n) {
    right_before = right;
    wrong_before = wrong;
    double total = 0;
    for (std::size_t h = 0; h <= depth; ++h) {
      right[h + 1] = symbols * right_before[h] + right_before[h + 2];
      wrong[h + 1] = symbols * wrong_before[h] + wrong_before[h + 2] + (symbols - 1) * right_before[h + 2];
      if (h == 0) wrong[1] += symbols * right_before[1];
      total += right[h + 1] + wrong[h + 1];
    }
    if (n >= config.shortest()) count += total;
  }
  return count;
}

// All positions up to the answer.
void relevant(const TaskConfig&, const Example&, std::size_t i, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j <= i; ++j) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task task() {
  return {.summary = "whether the brackets so far can still become well nested",
          .definition =
              "Inputs are `length` (or min_length to length) brackets of `symbols` kinds, opening and "
              "closing; answer i is yes if the first i + 1 brackets can be continued to a well-nested "
              "word, else no: after one bracket that closes nothing or the wrong kind, every answer is no. "
              "Opening brackets are uniform and open at most `depth` at a time; where both are possible, "
              "opening and closing are equally likely. The mistake is at a uniform position 0 to n, n the "
              "input's length (n: none): a bracket that closes the wrong kind, or nothing if none is open; "
              "after it, brackets close as if it were correct. So half of all answers are yes. The words "
              "are the Dyck languages of Chomsky and Schuetzenberger, \"The Algebraic Theory of "
              "Context-Free Languages\" (1963), with bounded depth as in Hewitt et al., \"RNNs can "
              "generate bounded hierarchical languages with optimal memory\" (EMNLP 2020); for "
              "transformers see Yao et al., \"Self-Attention Networks Can Process Bounded Hierarchical "
              "Languages\" (ACL 2021).",
          .keys = {"symbols", "length", "min_length", "depth"},
          .check = check,
          .tokens = tokens,
          .size = one_per_position,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_half,
          .relevant = relevant,
          .kinds = {"bracket"},
          .vary = sample};
}

}  // namespace thimble::tasks::dyck_valid
