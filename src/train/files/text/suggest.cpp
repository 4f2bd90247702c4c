#include "train/files/text/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/files/text/text.h"

namespace thimble {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Names that other tools have for what is called otherwise here.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"rope", "rotary"}, {"swish", "silu"}, {"rmsnorm", "rms"}, {"gelu_new", "gelu_tanh"}};

}  // namespace

double similarity(std::string_view a, std::string_view b) {
  // common[j]: length of the longest common subsequence of the letters of a so far and the first j letters of
  // b.
  std::vector<std::size_t> common(b.size() + 1);
  for (char letter : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t match = lower(letter) == lower(b[j - 1]) ? diagonal + 1 : 0;
      diagonal = common[j];
      common[j] = std::max({common[j], common[j - 1], match});
    }
  }
  const double letters = static_cast<double>(a.size() + b.size());
  return letters == 0 ? 1 : 2 * static_cast<double>(common.back()) / letters;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
  for (const auto& [other, ours] : kOtherNames)
    if (name == other && std::ranges::find(names, ours) != names.end()) return ours;
  const auto closer = [&](std::string_view a, std::string_view b) {
    return similarity(name, a) < similarity(name, b);
  };
  const auto best = std::max_element(names.begin(), names.end(), closer);
  return best != names.end() && similarity(name, *best) >= kSimilarEnough ? *best : "";
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view nearest = nearest_name(name, names);
  return nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest);
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  return did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()));
}

std::string did_you_mean(std::string_view number, std::int64_t low, std::int64_t high) {
  const auto meant = parse_number<double>(number);
  const bool fits = meant && std::trunc(*meant) == *meant && *meant >= static_cast<double>(low) &&
                    *meant <= static_cast<double>(high);
  return fits ? fmt::format(", did you mean {:.0f}?", *meant) : "";
}

}  // namespace thimble
