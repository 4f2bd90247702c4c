#include "train/data/files/problems.h"

#include <fmt/ranges.h>

#include "thimble/engine/error.h"
#include "train/files/text/format.h"

namespace thimble {

void Problems::add(const std::string& file, std::size_t line, std::string_view rule, std::string_view kind) {
  if (count_++ == 0) first_file_ = file;
  const std::string key = fmt::format("{}:{}", file, kind.empty() ? rule : kind);
  if (const auto known = kinds_.find(key); known != kinds_.end()) {
    Shown& same = shown_[known->second];
    if (same.more++ <= kLines) same.first.push_back(same.more > kLines ? "..." : std::to_string(line));
  } else if (full()) {
    ++hidden_;
  } else {
    kinds_.emplace(key, shown_.size());
    shown_.push_back(
        {line == 0 ? fmt::format("{}: {}", file, rule) : fmt::format("{}:{}: {}", file, line, rule)});
  }
}

std::string Problems::text() const {
  if (count_ == 0) return "";
  std::string message = fmt::format("{}: {}", first_file_, counted(count_, "problem"));
  for (const auto& [line, more, first] : shown_) {
    message += '\n' + line;
    if (more > 0)
      message += fmt::format(" (and {} like it: {})", counted(more, "more line"), fmt::join(first, ", "));
  }
  if (hidden_ > 0) message += fmt::format("\nand {} more", hidden_);
  return message;
}

void Problems::finish() const {
  if (count_ > 0) throw DataError(text());
}

}  // namespace thimble
