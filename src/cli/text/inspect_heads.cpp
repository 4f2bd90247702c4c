#include <algorithm>
#include <limits>

#include "cli/text/inspect.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/json.h"
#include "thimble/core/width.h"
#include "thimble/data/listing.h"
#include "thimble/inspect/report/svg.h"

namespace thimble::cli {

namespace {

// "layer 0" or "layers 0 to 3".
std::string index_range(const char* what, std::int64_t count) {
  return count == 1 ? fmt::format("{} 0", what) : fmt::format("{}s 0 to {}", what, count - 1);
}

// ", which are encoder 0, decoder 0, cross 0"; "" in an encoder-only model.
std::string meanings(const std::vector<AttentionLayer>& all) {
  const char* const first = all.size() == 1 ? ", which is " : ", which are ";
  std::string text;
  for (const AttentionLayer& layer : all)
    if (!layer.stack.empty()) text += (text.empty() ? first : ", ") + layer.title();
  return text;
}

}  // namespace

std::string head_title(const ModelConfig& model, HeadId id) {
  return fmt::format("{} head {}", attention_layers(model)[static_cast<std::size_t>(id.layer)].title(),
                     id.head);
}

HeadColumns::HeadColumns(const ModelConfig& model) {
  std::size_t widest = 0;
  for (const AttentionLayer& layer : attention_layers(model)) {
    titles_.push_back(layer.stack.empty() ? std::to_string(layer.index) : layer.title());
    widest = std::max(widest, titles_.back().size());
  }
  constexpr std::size_t kLayer = 5, kHead = 4, kMinWidth = 2;
  layer_ = std::max(kLayer, widest);
  head_ = widest > kLayer ? kMinWidth : kHead;
}

std::string HeadColumns::heading() const { return fmt::format("{:<{}} head", "layer", width() - 5); }

std::string HeadColumns::cell(HeadId id) const {
  return fmt::format("{:>{}} {:>{}}", titles_[static_cast<std::size_t>(id.layer)], layer_, id.head, head_);
}

void HeadChoice::add_to(Command& command) {
  command.add_option("--layer", layer, "Show only this layer, in the order of the table; the first is 0")
      .value_name("N");
  command.add_option("--head", head, "Show only this head of a layer; the first is 0").value_name("N");
}

void HeadChoice::check(const ModelConfig& model) const {
  const std::vector<AttentionLayer> all = attention_layers(model);
  require<ConfigError>(!layer || (*layer >= 0 && *layer < std::ssize(all)),
                       "--layer {}: there is no such layer, the model has {}{}", layer.value_or(0),
                       index_range("layer", std::ssize(all)), meanings(all));
  require<ConfigError>(!head || (*head >= 0 && *head < model.heads),
                       "--head {}: there is no such head, each layer of the model has {}", head.value_or(0),
                       index_range("head", model.heads));
}

HeadId HeadChoice::only(const ModelConfig& model) const {
  check(model);
  require<ConfigError>((layer || attention_layers(model).size() == 1) && (head || model.heads == 1),
                       "--svg draws one head; choose it with --layer and --head");
  return {layer.value_or(0), head.value_or(0)};
}

void show_patching(const PatchingReport& report, const ModelConfig& model, const HeadChoice& heads,
                   const Output& output) {
  if (output.prints_text()) {
    print_out("{}{}\nShare of the way from the base's answer to the source's, by one head's output:\n\n",
              wrapped(fmt::format("base    {}", fmt::join(report.base, " ")), line_width(1), 8),
              wrapped(fmt::format("source  {}", fmt::join(report.source, " ")), line_width(1), 8));
    const HeadColumns columns(model);
    print_out("{}   share\n", columns.heading());
    for (const PatchingReport::Head& h : report.heads)
      if (heads.has(h.id)) print_out("{} {:>+7.3f}\n", columns.cell(h.id), h.effect);
  }
  output.write(to_json(report));
}

void write_svg(const std::string& path, const std::string& title, const std::vector<std::string>& queries,
               const std::vector<std::string>& keys, std::span<const double> weights, bool causal) {
  std::vector<double> drawn(weights.begin(), weights.end());
  for (std::size_t i = 0; causal && i < queries.size(); ++i)
    std::fill_n(drawn.begin() + static_cast<std::ptrdiff_t>(i * keys.size() + i + 1), keys.size() - i - 1,
                std::numeric_limits<double>::quiet_NaN());
  write_file(path, head_svg(title, queries, keys, drawn));
}

}  // namespace thimble::cli
