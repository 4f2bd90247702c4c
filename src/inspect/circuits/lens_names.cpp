#include "thimble/inspect/lens_names.h"

#include <fmt/format.h>

namespace thimble {

std::string logit_lens_unavailable(const ModelConfig& model) {
  if (model.kind != ModelKind::recurrent) return "";
  return "recurrent: a state is replaced at every step, there is no residual stream to which layers add; requires model.kind encoder or encoder_decoder";
}

std::vector<std::string> lens_names(const ModelConfig& model) {
  if (!logit_lens_unavailable(model).empty()) return {};
  std::vector<std::string> names{"embedding"};
  for (std::int64_t l = 0; l < model.layers; ++l)
    names.push_back(fmt::format("{}{}", model.kind == ModelKind::encoder ? "layer " : "decoder.", l));
  return names;
}

Json to_json(const std::vector<LensResult>& results, const ModelConfig& model) {
  const std::string reason = logit_lens_unavailable(model);
  if (!reason.empty()) return {{"available", false}, {"reason", reason}};
  Json layers = Json::array();
  for (const LensResult& result : results)
    layers.push_back({{"after", result.after}, {"loss", result.loss}, {"accuracy", result.accuracy}});
  return {{"available", true}, {"layers", std::move(layers)}};
}

}  // namespace thimble
