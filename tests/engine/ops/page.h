// The tables of numbers of a Markdown page, for a comparison with computed results. A table is a code block that
// opens with ```numbers NAME and holds labels and numbers; numbers elsewhere on the page are not read.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/engine/tensor.h"

namespace thimble::tests {

struct Printed {
  std::string text;
  std::size_t at;  // in the page
  int line;

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
      if (line.starts_with("```")) {
        open_block(line.substr(3));
      } else if (!block_.empty()) {
        read_numbers(line, at);
      }
    }
  }

  const std::map<std::string, std::vector<Printed>>& blocks() const { return blocks_; }

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

  // Returns what is wrong on the page: blocks must agree with `results` to half a unit of their last digit;
  // blocks in `given` are inputs and have no result.
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

  void open_block(const std::string& info) {
    block_ = info.starts_with("numbers ") ? info.substr(8) : "";
    if (!block_.empty() && !blocks_.try_emplace(block_).second) throw Error(block_ + ": duplicate block");
  }

  void read_numbers(const std::string& line, std::size_t at) {
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
      blocks_[block_].push_back({line.substr(begin, end - begin), at + begin, line_});
    }
  }

  std::map<std::string, std::vector<Printed>> blocks_;
  std::string block_;
  int line_ = 1;
};

}  // namespace thimble::tests
