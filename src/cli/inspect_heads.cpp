#include <limits>
#include <nlohmann/json.hpp>

#include "cli/inspect.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/data/listing.h"
#include "thimble/inspect/svg.h"

namespace thimble::cli {

namespace {

// "layer 0" or "layers 0 to 3".
std::string range(const char* what, std::int64_t count) {
  return count == 1 ? fmt::format("{} 0", what) : fmt::format("{}s 0 to {}", what, count - 1);
}

}  // namespace

void HeadChoice::add_to(CLI::App& command) {
  command.add_option("--layer", layer, "Show the heads of this layer only; the first is 0")->type_name("N");
  command.add_option("--head", head, "Show this head of a layer only; the first is 0")->type_name("N");
}

void HeadChoice::check(const ModelConfig& model) const {
  require<ConfigError>(!layer || (*layer >= 0 && *layer < model.layers),
                       "--layer {}: there is no such layer, the model has {}", layer.value_or(0),
                       range("layer", model.layers));
  require<ConfigError>(!head || (*head >= 0 && *head < model.heads),
                       "--head {}: there is no such head, each layer of the model has {}", head.value_or(0),
                       range("head", model.heads));
}

HeadPlace HeadChoice::only(const ModelConfig& model) const {
  check(model);
  require<ConfigError>((layer || model.layers == 1) && (head || model.heads == 1),
                       "--svg draws one head; choose it with --layer and --head");
  return {layer.value_or(0), head.value_or(0)};
}

void show_patching(const PatchingReport& report, const HeadChoice& heads, const Output& output) {
  if (output.talks()) {
    fmt::print("{}{}\nShare of the way from the base's answer to the source's, by one head's output:\n\n",
               wrap(fmt::format("base    {}", fmt::join(report.base, " ")), 80),
               wrap(fmt::format("source  {}", fmt::join(report.source, " ")), 80));
    fmt::print("layer head   share\n");
    for (const PatchingReport::Head& h : report.heads)
      if (heads.has(h.layer, h.head)) fmt::print("{:>5} {:>4} {:>+7.3f}\n", h.layer, h.head, h.effect);
  }
  output.write(to_json(report));
}

void write_svg(const std::string& path, const std::string& title, const std::vector<std::string>& names,
               std::span<const double> weights, bool causal) {
  std::vector<double> drawn(weights.begin(), weights.end());
  for (std::size_t i = 0; causal && i < names.size(); ++i)
    std::fill_n(drawn.begin() + static_cast<std::ptrdiff_t>(i * names.size() + i + 1), names.size() - i - 1,
                std::numeric_limits<double>::quiet_NaN());
  write_file(path, head_svg(title, names, names, drawn));
}

}  // namespace thimble::cli
