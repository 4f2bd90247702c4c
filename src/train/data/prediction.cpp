#include "thimble/train/prediction.h"

#include <fmt/format.h>

#include "engine/core/portable_math.h"

namespace thimble {

namespace {

std::string cell(std::string_view text) {
  constexpr std::string_view kEscaped = "\t\n\r\\", kLetters = "tnr\\";
  std::string out;
  for (const char c : text)
    if (const std::size_t found = kEscaped.find(c); found != kEscaped.npos)
      (out += '\\') += kLetters[found];
    else
      out += c;
  return out;
}

}  // namespace

std::string predictions_header() {
  return "split\tinput\ttarget\tanswer\tright\tprobability\tfinished\tline\n";
}

std::string predictions_text(const Names& names, const TaskConfig& task, Split split,
                             std::span<const Prediction> predictions) {
  std::string out;
  for (const Prediction& p : predictions) {
    const auto input = [&](const std::vector<std::int32_t>& ids) {
      return cell(token_text(names, ids, task.input_tokens()));
    };
    const auto target = [&](const std::vector<std::int32_t>& ids) {
      return cell(token_text(names, ids, task.target_tokens()));
    };
    const std::string finished = p.finished ? fmt::format("{}", *p.finished) : "";
    out += fmt::format("{}\t{}\t{}\t{}\t{}\t{:.6g}\t{}\t{}\n", split_name(split), input(p.input),
                       target(p.target), target(p.answer), p.right(), portable::exp(p.log_probability),
                       finished, cell(p.line));
  }
  return out;
}

}  // namespace thimble
