#include "train/data/layout.h"

#include "thimble/engine/error.h"
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

}  // namespace thimble
