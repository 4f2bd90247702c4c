#include <nlohmann/json.hpp>

#include "thimble/inspect/inspect.h"
#include "thimble/train/cost.h"

namespace thimble {

namespace f32 {
InspectReport run_inspection(const ModelSource& source, std::int64_t sequences);
}
namespace f64 {
InspectReport run_inspection(const ModelSource& source, std::int64_t sequences);
}

InspectReport inspect(const ModelSource& source, std::int64_t sequences) {
  require_memory(Job::inspection, source.config);
  const bool single = source.config.train.precision == Precision::float32;
  return single ? f32::run_inspection(source, sequences) : f64::run_inspection(source, sequences);
}

namespace {

nlohmann::ordered_json to_json(const HeadScore& score) {
  return {{"value", score.value}, {"chance", score.chance}, {"eligible", score.eligible}};
}

}  // namespace

nlohmann::ordered_json to_json(const InspectReport& report) {
  nlohmann::ordered_json heads = nlohmann::ordered_json::array();
  for (const HeadReport& h : report.heads) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (std::int64_t i = 0; i < report.length; ++i) {
      const auto first = h.mean_weights.begin() + i * report.length;
      rows.push_back(std::vector<double>(first, first + report.length));
    }
    heads.push_back({{"layer", h.layer},
                     {"head", h.head},
                     {"scores", {{"mirror", to_json(h.mirror)}, {"task_target", to_json(h.task_target)}}},
                     {"mean_weights", rows}});
  }
  return {{"sequences", report.sequences}, {"heads", heads}};
}

}  // namespace thimble
