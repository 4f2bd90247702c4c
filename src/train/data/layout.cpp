#include "train/data/layout.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/rows.h"
#include "train/files/text/format.h"

namespace thimble {

std::string layout_mismatch(Layout layout, ExampleSize size, bool sparse) {
  const bool generates = layout == Layout::next || layout == Layout::seq2seq;
  if (layout == Layout::position && size.input != size.target)
    return fmt::format("{} for {}: one output per position requires as many answers as tokens",
                       counted(size.target, "answer"), counted(size.input, "token"));
  if (layout == Layout::sequence && size.target != 1)
    return fmt::format("{} answers: one output per sequence requires exactly 1", size.target);
  if (generates && sparse)
    return "a position without an answer: one output per next token requires an answer at every position";
  if (layout == Layout::next && (size.input < 1 || size.target < 1))
    return "one output per next token requires an input and a target";
  return "";
}

std::string_view layout_name(Layout layout) {
  if (layout == Layout::position) return "position";
  return layout == Layout::sequence ? "sequence" : "next";
}

std::string layout_remedy(Layout from, Layout to) {
  if (from == to || (from == Layout::seq2seq && to == Layout::next)) return "";
  return fmt::format("; set {}model.output.per={}{}", from == Layout::seq2seq ? "model.kind=encoder " : "",
                     layout_name(to), to == Layout::next ? " model.attention.mask=causal" : "");
}

void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size) {
  const std::string mismatch = layout_mismatch(layout, size, task.sparse);
  if (!mismatch.empty())
    throw DataError(fmt::format("task {}: {}{}", name, mismatch, layout_remedy(layout, usual_layout(size))));
}

std::int64_t laid_out_length(Layout layout, ExampleSize size) {
  if (layout == Layout::seq2seq) return size.target + 1;
  return size.input + (layout == Layout::next ? size.target - 1 : 0);
}

Layout usual_layout(ExampleSize size) {
  if (size.target == 1) return Layout::sequence;
  return size.target == size.input ? Layout::position : Layout::next;
}

ModelSizes model_sizes(const TaskConfig& config, Layout layout) {
  const Task& task = checked_task(config);
  const ExampleSize size = task.size(config);
  if (task.open != nullptr) rows_of(config).check(layout);
  check_layout(config.name, task, layout, size);
  return {.vocabulary = std::ssize(vocabulary_of(config, layout)),
          .length = laid_out_length(layout, size),
          .source_length = layout == Layout::seq2seq ? size.input : 0};
}

std::vector<std::string> vocabulary_of(const TaskConfig& config, Layout layout) {
  std::vector<std::string> tokens = checked_task(config).tokens(config);
  if (layout != Layout::seq2seq) return tokens;
  for (std::string mark : {"<begin>", "<end>"}) {
    while (std::ranges::find(tokens, mark) != tokens.end()) mark.insert(mark.size() - 1, 1, '\'');
    tokens.push_back(mark);
  }
  return tokens;
}

std::vector<std::string> token_names(const TaskConfig& config, Layout layout) {
  std::vector<std::string> names = vocabulary_of(config, layout);
  for (std::string& name : names) name = shown_token(name);
  return names;
}

}  // namespace thimble
