#include "thimble/engine/attention_layer.h"

#include <fmt/format.h>

namespace thimble {

std::string AttentionLayer::name() const {
  return fmt::format("{}.{}", stack.empty() ? "encoder" : stack, index);
}

std::string AttentionLayer::title() const { return stack.empty() ? fmt::format("layer {}", index) : name(); }

std::string AttentionLayer::head_name(std::int64_t head) const {
  return HeadId{index, head}.name(stack.empty() ? "" : name());
}

std::string HeadId::name(const std::string& attention) const {
  return fmt::format("{}.{}", attention.empty() ? fmt::to_string(layer) : attention, head);
}

std::vector<AttentionLayer> attention_layers(const ModelConfig& model) {
  if (model.kind == ModelKind::recurrent) {
    if (model.attention.score == Score::none) return {};
    return {{.stack = "cross", .d_value = model.d_model, .keys_source = true}};
  }
  if (model.mixer != Mixer::attention) return {};
  std::vector<AttentionLayer> all;
  const AttentionLayer sizes{.heads = model.heads, .d_value = model.attention_sizes().d_value};
  const bool pair = model.kind == ModelKind::encoder_decoder;
  for (std::int64_t l = 0; l < model.layers; ++l) {
    AttentionLayer& layer = all.emplace_back(sizes);
    layer.stack = pair ? "encoder" : "";
    layer.index = layer.block = l;
    layer.queries_source = layer.keys_source = pair;
    layer.causal = model.attention.mask == Mask::causal;
  }
  for (std::int64_t l = 0; pair && l < model.layers; ++l) {
    for (const bool cross : {false, true}) {
      AttentionLayer& layer = all.emplace_back(sizes);
      layer.stack = cross ? "cross" : "decoder";
      layer.index = l;
      layer.block = model.layers + l;
      layer.keys_source = cross;
      layer.causal = !cross;
    }
  }
  return all;
}

}  // namespace thimble
