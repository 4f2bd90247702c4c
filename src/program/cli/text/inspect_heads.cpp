#include <fmt/ranges.h>

#include <cmath>

#include "inspect/effects/head_names.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/text_table.h"
#include "thimble/engine/error.h"

namespace thimble::cli {

std::string head_title(const ModelConfig& model, HeadId id) {
  return "head " + head_name(attention_layers(model), id);
}

void HeadChoice::add_to(Command& command) {
  command.add_option("--heads", names_, "Show only these heads, such as 0.1,1.0 or '1.*' (layer.head from 0)")
      .value_name("LIST");
}

void HeadChoice::choose(std::span<const AttentionLayer> layers) {
  if (names_ || !layers.empty()) heads_ = parse_heads(names_.value_or("*"), layers);
}

std::string sample_text(const OpenConfig& config, const Effect& effect, const std::string& file) {
  const std::int64_t sequences = effect.sequences;
  const std::int64_t rows = config.source == nullptr ? 0 : config.source->rows(Split::test);
  const std::string of = sequences < rows ? fmt::format(" of {}", rows) : "",
                    what = file.empty() ? "test sequence" : "row";
  return fmt::format(
      "{}{} {}{}{}{}{}", sequences, of, what, sequences == 1 && of.empty() ? "" : "s",
      file.empty() ? "" : " of " + own_text(file), of.empty() ? "" : ", a random sample",
      effect.distinct < sequences ? fmt::format(", {} of them different", effect.distinct) : "");
}

void show_ablation(const AblationReport& report, const OpenConfig& config, const Output& output) {
  if (output.prints_text()) {
    const EvalResult& base = report.baseline;
    print_paragraph("{}: loss {:.4f}, tokens {:.2f} %. Change in loss and accuracy when {} {}:",
                    sample_text(config, report.zero), base.loss, 100 * base.accuracy,
                    fmt::join(report.names, ", "),
                    report.names.size() == 1 ? "is ablated" : "are ablated together");
    TextTable table("ablation", {{.title = own_text("Δloss"), .min_width = 9},
                                 {.title = " 95 % CI, approximate", .is_left = true},
                                 {.title = own_text("Δtokens"), .min_width = 9},
                                 {.title = " 95 % CI", .is_left = true}});
    const std::pair<const char*, const Effect*> kinds[] = {
        {"zero", &report.zero}, {"mean", &report.mean}, {"resample", &report.resample}};
    const auto text = [](const Interval& interval, double scale, int digits) {
      return std::isfinite(interval.low) ? fmt::format(" {:.{}f} to {:.{}f}", scale * interval.low, digits,
                                                       scale * interval.high, digits)
                                         : " unknown";  // of fewer than two sequences
    };
    const auto change = [](double x, int digits) {
      return std::isfinite(x) ? fmt::format("{:+.{}f}", x, digits) : "-";
    };
    for (const auto& [name, effect] : kinds)
      table.add(name, {change(effect->loss_change, 4), text(effect->interval, 1, 4),
                       change(100 * effect->accuracy.mean, 2), text(effect->accuracy.interval, 100, 2)});
    print_out("\n{}", table.text(line_width(1)));
    if (report.unpaired > 0)
      print_out("resample: of the {} sequences that share their length with another\n",
                report.resample.sequences);
  }
  output.write(to_json(report));
}

}  // namespace thimble::cli
