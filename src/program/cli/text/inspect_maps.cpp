#include <algorithm>
#include <functional>

#include "program/cli/text/heat_map.h"
#include "program/cli/text/inspect.h"
#include "thimble/inspect/inspect.h"

namespace thimble::cli {

namespace {

// Half blocks are not ASCII.
Colors map_colors() { return has_utf8() ? colors() : Colors::none; }

// The caption of maps of means: over how many sequences they are.
class MapCaption {
 public:
  // Adds the counts of a map. Returns which cells to mark: those of few sequences, unless all are.
  std::vector<char> add(std::span<const std::int64_t> counts) {
    std::vector<char> marked(counts.size());
    const bool some = std::ranges::max(counts) >= EvalResult::kEnoughSequences;
    for (std::size_t i = 0; i < counts.size(); ++i)
      marked[i] = some && counts[i] > 0 && counts[i] < EvalResult::kEnoughSequences;
    few_ |= std::ranges::find(marked, 1) != marked.end();
    missing_ |= std::ranges::find(counts, 0) != counts.end();
    vary_ |= std::ranges::min(counts) < std::ranges::max(counts);
    counts_.insert(counts_.end(), counts.begin(), counts.end());
    return marked;
  }

  std::string text() const {
    std::string text =
        fmt::format("Attention of query (row) on key (column), mean over {}", sequences_text(counts_));
    if (vary_) text += ", in each cell over those that have its query and its key";
    const bool is_gray = map_colors() != Colors::none;
    if (few_)
      text += fmt::format("; {} fewer than {} sequences", is_gray ? "gray:" : "' marks",
                          EvalResult::kEnoughSequences);
    if (missing_ && !(is_gray && few_)) text += is_gray ? "; gray: none" : "; ? marks none";
    return text;
  }

 private:
  std::vector<std::int64_t> counts_;
  bool few_ = false, missing_ = false, vary_ = false;
};

}  // namespace

double cost_of(const InspectReport& report, const HeadReport& head) {
  const Effect& zero = head.effects.zero;
  return report.scale.has_smallest() && report.baseline.labels > 0
             ? cost_in_smallest(zero.loss_change, zero.accuracy.mean, report.scale)
             : head.effects.importance.raw;
}

std::ptrdiff_t print_maps(const InspectReport& report, const HeadChoice& heads, std::size_t width) {
  constexpr std::size_t kMaxShown = 4;
  const std::vector<AttentionLayer> all = attention_layers(report.config.model);
  std::vector<const HeadReport*> drawn;
  for (const HeadReport& head : report.heads)
    if (heads.has(head.effects.id)) drawn.push_back(&head);
  const bool some = !heads.some() && drawn.size() > kMaxShown;
  if (some) {
    std::ranges::stable_sort(drawn, std::greater(), [&](const HeadReport* h) { return cost_of(report, *h); });
    drawn.resize(kMaxShown);
  }
  std::vector<NumberedMatrix> maps;
  MapCaption caption;
  for (const HeadReport* head : drawn) {
    const auto layer = static_cast<std::size_t>(head->effects.id.layer);
    const std::int64_t columns = report.keys(all[layer]);
    const std::span<const std::int64_t> all_counts = report.mean_counts[layer];
    const MeasuredPart part = measured_part(all_counts, columns);
    const std::vector<std::int64_t> counts = cropped(all_counts, columns, part);
    maps.push_back({head_title(report.config.model, head->effects.id),
                    cropped(std::span<const double>(head->mean_weights.from_start), columns, part),
                    part.columns, caption.add(counts)});
  }
  const DrawnMaps pictures = draw_maps(maps, map_colors(), width);
  print_out("\n");
  if (some) print_out("The {} heads that cost most; --heads chooses others.\n", kMaxShown);
  print_paragraph(
      "{}{}:", caption.text(),
      pictures.shared == 1
          ? ""
          : fmt::format("; {0} rows and {0} columns share a cell, which shows the largest", pictures.shared));
  write_picture(legend(map_colors()) + '\n' + pictures.text);
  return std::ranges::count(pictures.text, '\n');
}

}  // namespace thimble::cli
