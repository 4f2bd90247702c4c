#include "inspect/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "thimble/engine/error.h"
#include "thimble/train/train.h"
#include "train/files/text/text.h"
#include "train/files/text/width.h"

namespace thimble {

namespace {

// Lengths in pixels.
constexpr double kCell = 14, kGap = 5, kMargin = 12, kTitle = 28, kLegend = 56;
constexpr double kLegendText = 110;                                    // where the text of the legend starts
constexpr double kLabelSize = 11, kTitleSize = 13, kCharacter = 0.61;  // width of a column / font size

// --scale-0 to --scale-4 of the light theme in src/inspect/report/page/page.css: equal steps of lightness.
constexpr std::array<std::array<int, 3>, 5> kScale = {
    {{0xff, 0xff, 0xff}, {0xb5, 0xd4, 0xec}, {0x5f, 0xa5, 0xd3}, {0x20, 0x69, 0xae}, {0x08, 0x30, 0x6b}}};

// Interpolates linearly between the colors of the scale.
std::string color(double weight) {
  const double at = std::min(weight, 1.0) * (kScale.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), kScale.size() - 2);
  const auto channel = [&](std::size_t c) {
    return std::lround(kScale[low][c] +
                       (at - static_cast<double>(low)) * (kScale[low + 1][c] - kScale[low][c]));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2));
}

double text_width(std::string_view text, double size) {
  return static_cast<double>(display_width(printable(text))) * kCharacter * size;
}

// Returns the width of the longest label.
double label_width(const std::vector<std::string>& labels) {
  double longest = 0;
  for (const std::string& label : labels) longest = std::max(longest, text_width(label, kLabelSize));
  return longest;
}

std::string cells(std::size_t columns, const std::vector<double>& weights) {
  std::string out;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::string fill = std::isnan(weights[k]) ? "url(#masked)" : color(weights[k]);
    if (fill == "#ffffff") continue;  // as the background
    const std::size_t row = k / columns, column = k % columns;
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       kCell * static_cast<double>(column), kCell * static_cast<double>(row), kCell, kCell,
                       fill);
  }
  return out;
}

// Returns a dot in each cell of few sequences, unless all are.
std::string dots(std::size_t columns, std::span<const std::int64_t> counts) {
  std::string out;
  if (counts.empty() || std::ranges::max(counts) < EvalResult::kEnoughSequences) return out;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const std::size_t row = k / columns, column = k % columns;
    if (counts[k] > 0 && counts[k] < EvalResult::kEnoughSequences)
      out +=
          fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"1.5\" fill=\"#e07b00\"/>\n",
                      kCell * (static_cast<double>(column) + 0.5), kCell * (static_cast<double>(row) + 0.5));
  }
  return out;
}

// Returns what hatching and dots mean.
std::string notes(const std::vector<double>& weights, std::span<const std::int64_t> counts, bool dotted) {
  std::string out;
  if (std::ranges::any_of(weights, [](double w) { return std::isnan(w); }))
    out += std::ranges::find(counts, 0) != counts.end() ? ", hatched: no sequence" : ", hatched: masked";
  if (dotted) out += fmt::format(", dot: fewer than {} sequences", EvalResult::kEnoughSequences);
  return out;
}

std::string labels(const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
  constexpr double kBaseline = 0.72 * kCell;
  std::string out;
  for (std::size_t i = 0; i < queries.size(); ++i)
    out += fmt::format("<text x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n", -kGap,
                       kCell * static_cast<double>(i) + kBaseline, escape_markup(printable(queries[i])));
  for (std::size_t j = 0; j < keys.size(); ++j)
    out += fmt::format("<text transform=\"translate({:.2f} {}) rotate(-90)\">{}</text>\n",
                       kCell * static_cast<double>(j) + kBaseline, -kGap, escape_markup(printable(keys[j])));
  return out;
}

// Returns the color scale from 0 to 1 at the height `y`.
std::string legend(double y, const std::string& notes) {
  constexpr double kWidth = kLegendText - 10, kHeight = 9;
  std::string out = "<defs><linearGradient id=\"scale\">";
  for (std::size_t s = 0; s < kScale.size(); ++s) {
    const double at = static_cast<double>(s) / (kScale.size() - 1);
    out += fmt::format("<stop offset=\"{}\" stop-color=\"{}\"/>", at, color(at));
  }
  out += "</linearGradient></defs>\n";
  out += fmt::format("<rect y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#scale)\" stroke=\"#8a94a0\"/>\n",
                     y, kWidth, kHeight);
  for (const auto& [x, text] : {std::pair(0.0, "0"), std::pair(0.5, "0.5"), std::pair(1.0, "1")})
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x * kWidth,
                       y + kHeight + 12, text);
  out += fmt::format("<text x=\"{}\" y=\"{}\">weight{}</text>\n", kLegendText, y + kHeight - 1, notes);
  return out;
}

}  // namespace

std::string head_svg(const std::string& title, const std::vector<std::string>& queries,
                     const std::vector<std::string>& keys, const std::vector<double>& weights,
                     std::span<const std::int64_t> counts) {
  require<ShapeError>(!weights.empty() && weights.size() == queries.size() * keys.size(),
                      "svg: {} weights for {} queries and {} keys: there must be one for each pair",
                      weights.size(), queries.size(), keys.size());
  constexpr double kRounding = 1e-5;
  for (const double w : weights)
    require<NumericError>(std::isnan(w) || (w >= 0 && w <= 1 + kRounding),
                          "svg: a weight is {}: it must be within 0 and 1", w);

  const double columns = kCell * static_cast<double>(keys.size()),
               rows = kCell * static_cast<double>(queries.size());
  const double left = kMargin + label_width(queries) + kGap + 16,
               top = kTitle + 16 + label_width(keys) + kGap;
  const std::string dotted = dots(keys.size(), counts), note = notes(weights, counts, !dotted.empty());
  const double legend_width = std::max(160.0, kLegendText + text_width("weight" + note, kLabelSize));
  const double width = kMargin + std::max(left + std::max(columns, legend_width),
                                          kMargin + text_width(title, kTitleSize)),
               height = top + rows + kLegend;

  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.2f}\" height=\"{1:.2f}\" viewBox=\"0 0 {0:.2f} "
      "{1:.2f}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"{2}\" "
      "fill=\"#1b2430\">\n",
      width, height, kLabelSize);
  out += fmt::format("<title>{}</title>\n", escape_markup(printable(title)));
  out +=
      "<defs><pattern id=\"masked\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">"
      "<path d=\"M-1 5L5 -1\" stroke=\"#b9c1ca\" stroke-width=\"0.8\"/></pattern></defs>\n";
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += fmt::format("<text x=\"{}\" y=\"20\" font-size=\"{}\" font-weight=\"bold\">{}</text>\n", kMargin,
                     kTitleSize, escape_markup(printable(title)));
  out += fmt::format("<g transform=\"translate({:.2f} {:.2f})\">\n", left, top);
  out += "<g shape-rendering=\"crispEdges\">\n" + cells(keys.size(), weights) + "</g>\n";
  out += dotted;
  out += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#8a94a0\"/>\n", columns, rows);
  out += labels(queries, keys);
  out += fmt::format("<text y=\"{:.2f}\" fill=\"#5b6675\">key</text>\n", -label_width(keys) - kGap - 6);
  out += fmt::format(
      "<text transform=\"translate({:.2f} {}) rotate(-90)\" text-anchor=\"end\" fill=\"#5b6675\">query</text>\n",
      -label_width(queries) - kGap - 8, 0);
  out += legend(rows + 18, note);
  return out + "</g>\n</svg>\n";
}

}  // namespace thimble
