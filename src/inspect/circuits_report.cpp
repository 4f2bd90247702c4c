
#include "thimble/core/json.h"
#include "thimble/inspect/circuits.h"

namespace thimble {

namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Json to_json(const DoubleMatrix& matrix) {
  if (matrix.values.empty()) return nullptr;
  Json rows = Json::array();
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    rows.push_back(std::vector<double>(matrix.row(r), matrix.row(r) + matrix.cols));
  return rows;
}

Json to_json(const HeadCircuits& circuits) {
  return {{"ov_copying", or_null(circuits.ov_copying)},
          {"qk_reciprocity", or_null(circuits.qk_reciprocity)},
          {"ov_singular_values", circuits.ov_singular_values},
          {"qk_singular_values", circuits.qk_singular_values},
          {"qk_tokens", to_json(circuits.qk_tokens)},
          {"ov_tokens", to_json(circuits.ov_tokens)},
          {"reasons", circuits.reasons}};
}

Json to_json(const Attribution& attribution) {
  if (!attribution.reason.empty()) return {{"offered", false}, {"reason", attribution.reason}};
  Json parts = Json::array();
  for (const Attribution::Part& part : attribution.parts)
    parts.push_back({{"name", part.name}, {"mean", part.mean}});
  Json json = {{"offered", true},
               {"parts", parts},
               {"logit", attribution.logit},
               {"labels", attribution.labels},
               {"worst_error", attribution.worst_error},
               {"inexact", attribution.inexact}};
  if (!attribution.warning.empty()) json["warning"] = attribution.warning;
  return json;
}

}  // namespace thimble
