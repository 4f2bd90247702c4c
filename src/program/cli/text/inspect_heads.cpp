#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspect/report/svg.h"
#include "program/cli/text/inspect.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"
#include "train/data/rows.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

// Returns "layer 0" or "layers 0 to 3".
std::string index_range(const char* what, std::int64_t count) {
  return count == 1 ? fmt::format("{} 0", what) : fmt::format("{}s 0 to {}", what, count - 1);
}

std::string names_of(const std::vector<AttentionLayer>& layers) {
  std::vector<std::string> names;
  for (const AttentionLayer& layer : layers) names.push_back(layer.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string head_title(const ModelConfig& model, HeadId id) {
  return fmt::format("{} head {}", attention_layers(model)[static_cast<std::size_t>(id.layer)].title(),
                     id.head);
}

HeadColumns::HeadColumns(const ModelConfig& model) {
  std::size_t widest = 0;
  for (const AttentionLayer& layer : attention_layers(model)) {
    layers_.push_back(layer.stack.empty() ? std::to_string(layer.index) : layer.name());
    widest = std::max(widest, layers_.back().size());
  }
  constexpr std::size_t kLayer = 5, kHead = 4, kMinWidth = 2;
  layer_ = std::max(kLayer, widest);
  head_ = widest > kLayer ? kMinWidth : kHead;
}

std::string HeadColumns::heading() const { return fmt::format("{:<{}} head", "layer", width() - 5); }

std::string HeadColumns::cell(HeadId id) const {
  return fmt::format("{:>{}} {:>{}}", layers_[static_cast<std::size_t>(id.layer)], layer_, id.head, head_);
}

const char* layer_option(const ModelConfig& model) {
  return model.kind == ModelKind::encoder ? "--layer" : "--attention";
}

void HeadOptions::add_to(Command& command) {
  Option& by_number = command.add_option("--layer", layer, "Show only this layer of an encoder (from 0)");
  by_number.value_name("N");
  command.add_option("--attention", attention, "Show only this attention, such as encoder.0 or cross.0")
      .excludes(by_number)
      .value_name("NAME");
  command.add_option("--head", head, "Show only this head of each layer (from 0)").value_name("N");
}

HeadChoice HeadOptions::choose(const ModelConfig& model) const {
  const std::vector<AttentionLayer> all = attention_layers(model);
  HeadChoice choice{layer, head};
  require<ConfigError>(!layer || model.kind == ModelKind::encoder,
                       "--layer {}: is for encoder-only models; give --attention with one of {}",
                       layer.value_or(0), names_of(all));
  require<ConfigError>(!layer || (*layer >= 0 && *layer < std::ssize(all)),
                       "--layer {}: there is no such layer; the model has {}", layer.value_or(0),
                       index_range("layer", std::ssize(all)));
  if (attention) {
    const auto found = std::ranges::find(all, *attention, &AttentionLayer::name);
    require<ConfigError>(found != all.end(), "--attention {}: there is no such attention; the model has {}",
                         *attention, names_of(all));
    choice.layer = found - all.begin();
  }
  require<ConfigError>(!head || (*head >= 0 && *head < model.heads),
                       "--head {}: there is no such head; each layer of the model has {}", head.value_or(0),
                       index_range("head", model.heads));
  return choice;
}

HeadId HeadChoice::only(const ModelConfig& model) const {
  require<ConfigError>((layer || attention_layers(model).size() == 1) && (head || model.heads == 1),
                       "--svg draws one head; choose it with {} and --head", layer_option(model));
  return {layer.value_or(0), head.value_or(0)};
}

std::string sample_text(const Config& config, std::int64_t sequences) {
  const Rows* rows = config.task.rows.get();
  const bool is_sample = rows != nullptr && sequences < rows->splits()[2];
  return fmt::format("{}{} test sequences", sequences,
                     is_sample ? fmt::format(" of {}", rows->splits()[2]) : "");
}

void show_ablation(const AblationReport& report, const Config& config, const Output& output) {
  if (output.prints_text()) {
    const EvalResult& base = report.baseline;
    print_out("{}", wrapped(fmt::format("{}: loss {:.4f}, tokens {:.2f} %. Change in loss and accuracy when "
                                        "{} {}:",
                                        sample_text(config, base.sequences), base.loss, 100 * base.accuracy,
                                        fmt::join(report.names, ", "),
                                        report.names.size() == 1 ? "is ablated" : "are ablated together"),
                            line_width(1)));
    print_out("\n{:<8} {}  {:<18} {}  95 % CI\n", "ablation", padded_left(own_text("Δloss"), 8), "95 % CI",
              padded_left(own_text("Δtokens"), 8));
    const std::pair<const char*, const Effect*> kinds[] = {
        {"zero", &report.zero}, {"mean", &report.mean}, {"resample", &report.resample}};
    const auto text = [](const Interval& interval, double scale, int digits) {
      return std::isfinite(interval.low) ? fmt::format("{:.{}f} to {:.{}f}", scale * interval.low, digits,
                                                       scale * interval.high, digits)
                                         : "unknown";  // of fewer than two sequences
    };
    const auto change = [](double x, int digits) {
      return std::isfinite(x) ? fmt::format("{:>+8.{}f}", x, digits) : fmt::format("{:>8}", "-");
    };
    for (const auto& [name, effect] : kinds)
      print_out("{:<8} {}  {:<18} {}  {}\n", name, change(effect->loss_change, 4),
                text(effect->interval, 1, 4), change(100 * effect->accuracy_change, 2),
                text(effect->accuracy_interval, 100, 2));
    if (report.unpaired > 0)
      print_out("resample: of the {} sequences that share their length with another\n",
                report.resample.sequences);
  }
  output.write(to_json(report));
}

void write_svg(const std::string& path, const std::string& title, const std::vector<std::string>& queries,
               const std::vector<std::string>& keys, std::span<const double> weights, bool causal,
               std::span<const std::int64_t> counts) {
  std::vector<double> drawn(weights.begin(), weights.end());
  for (std::size_t i = 0; causal && i < queries.size(); ++i)
    std::fill_n(drawn.begin() + static_cast<std::ptrdiff_t>(i * keys.size() + i + 1), keys.size() - i - 1,
                std::numeric_limits<double>::quiet_NaN());
  write_result(path, head_svg(title, queries, keys, drawn, counts));
}

}  // namespace thimble::cli
