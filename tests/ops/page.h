// The numbers of a Markdown page, so that a test can hold them to what is computed.
//
// A block that opens with ```numbers NAME holds labels and numbers. Every other number of the page, outside
// of links and of blocks of C++ and commands, must stand in a block of its section, written the same way.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "thimble/core/error.h"
#include "thimble/tensor/tensor.h"

namespace thimble::tests {

struct Printed {
  std::string text;
  std::size_t at;  // in the page
  int line, section;

  double value() const { return std::stod(text); }
  double unit() const {  // of the last digit
    const std::size_t point = text.find('.');
    return point == text.npos ? 1 : std::pow(10, -static_cast<double>(text.size() - point - 1));
  }
};

using Results = std::map<std::string, std::vector<double>>;  // by the name of a block

class Page {
 public:
  explicit Page(const std::string& text) {
    std::istringstream in(text);
    std::size_t at = 0;
    for (std::string line; std::getline(in, line); at += line.size() + 1, ++line_) {
      if (line.starts_with("## ")) last_fence_.emplace_back();
      if (line.starts_with("```")) {
        open_fence(line.substr(3));
      } else if (fence_ != "cpp" && fence_ != "text" && fence_ != "sh") {
        read_numbers(line, at);
      }
    }
  }

  const std::map<std::string, std::vector<Printed>>& blocks() const { return blocks_; }
  const std::vector<Printed>& prose() const { return prose_; }
  // What the last block of each section is, the introduction first.
  const std::vector<std::string>& last_fence() const { return last_fence_; }

  std::vector<double> numbers(const std::string& block) const {
    std::vector<double> values;
    for (const Printed& number : blocks_.at(block)) values.push_back(number.value());
    return values;
  }
  Tensor tensor(const std::string& block, Shape shape, std::size_t first = 0) const {
    const std::vector<double> all = numbers(block);
    std::vector<Real> values;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements()); ++i) {
      values.push_back(static_cast<Real>(all.at(first + i)));
    }
    return {shape, values};
  }

  // What is wrong on the page: blocks must agree with `results` to half a unit of their last digit, but for
  // those of `given`, which results come from.
  std::vector<std::string> problems(const Results& results, const std::set<std::string>& given) const {
    std::vector<std::string> found;
    for (const auto& [name, printed] : blocks_) {
      const auto result = results.find(name);
      if (result == results.end() && !given.contains(name)) found.push_back(name + ": nothing computes this");
      if (result != results.end()) compare(found, name, printed, result->second);
    }
    for (const auto& [name, values] : results) {
      if (!blocks_.contains(name)) found.push_back(name + ": not on the page");
    }
    for (const Printed& number : prose_) {
      if (!written_.contains({number.section, number.text})) {
        found.push_back(fmt::format("line {}: {} is in no block of its section", number.line, number.text));
      }
    }
    return found;
  }

 private:
  static void compare(std::vector<std::string>& found, const std::string& name,
                      const std::vector<Printed>& printed, const std::vector<double>& values) {
    if (printed.size() != values.size()) {
      found.push_back(fmt::format("{}: {} numbers, computed {}", name, printed.size(), values.size()));
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::abs(printed[i].value() - values[i]) <= 0.5 * printed[i].unit() + 1e-6) continue;
      found.push_back(
          fmt::format("line {}: {}: {}, computed {:.6f}", printed[i].line, name, printed[i].text, values[i]));
    }
  }

  void open_fence(const std::string& info) {
    fence_ = info;
    if (!info.empty()) last_fence_.back() = info;
    if (info.starts_with("numbers ")) block_ = info.substr(8);
    if (info.empty()) block_.clear();
    if (!block_.empty() && !blocks_.try_emplace(block_).second) throw Error(block_ + ": twice on the page");
  }

  void read_numbers(std::string line, std::size_t at) {
    for (std::size_t middle; (middle = line.find("](")) != line.npos;) {  // links are left out
      const std::size_t first = line.rfind('[', middle), last = line.find(')', middle);
      require<Error>(first != line.npos && last != line.npos, "line {}: a link without an end", line_);
      line.replace(first, last + 1 - first, last + 1 - first, ' ');
    }
    const auto is_digit = [&](std::size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
    for (std::size_t end = 0; end < line.size(); ++end) {
      if (!is_digit(end)) continue;
      const bool negative = end > 0 && line[end - 1] == '-' && (end == 1 || line[end - 2] == ' ');
      const std::size_t begin = negative ? end - 1 : end;
      while (is_digit(end)) ++end;
      if (end < line.size() && line[end] == '.' && is_digit(end + 1)) {
        do ++end;
        while (is_digit(end));
      }
      const Printed printed{line.substr(begin, end - begin), at + begin, line_,
                            static_cast<int>(last_fence_.size()) - 1};
      (block_.empty() ? prose_ : blocks_[block_]).push_back(printed);
      if (!block_.empty()) written_.emplace(printed.section, printed.text);
    }
  }

  std::map<std::string, std::vector<Printed>> blocks_;
  std::vector<Printed> prose_;
  std::set<std::pair<int, std::string>> written_;  // in the blocks of each section
  std::vector<std::string> last_fence_{1};
  std::string fence_, block_;
  int line_ = 1;
};

}  // namespace thimble::tests
