#include <nlohmann/json.hpp>

#include "thimble/inspect/circuits.h"

namespace thimble {

namespace {

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

nlohmann::ordered_json to_json(const DoubleMatrix& matrix) {
  if (matrix.values.empty()) return nullptr;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    rows.push_back(std::vector<double>(matrix.row(r), matrix.row(r) + matrix.cols));
  return rows;
}

nlohmann::ordered_json to_json(const HeadCircuits& circuits) {
  return {{"ov_copying", or_null(circuits.ov_copying)},
          {"qk_reciprocity", or_null(circuits.qk_reciprocity)},
          {"ov_singular_values", circuits.ov_singular_values},
          {"qk_singular_values", circuits.qk_singular_values},
          {"qk_tokens", to_json(circuits.qk_tokens)},
          {"ov_tokens", to_json(circuits.ov_tokens)},
          {"reasons", circuits.reasons}};
}

nlohmann::ordered_json to_json(const Attribution& attribution) {
  if (!attribution.reason.empty()) return {{"offered", false}, {"reason", attribution.reason}};
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const Attribution::Part& part : attribution.parts)
    parts.push_back({{"name", part.name}, {"mean", part.mean}});
  nlohmann::ordered_json json = {{"offered", true},
                                 {"parts", parts},
                                 {"logit", attribution.logit},
                                 {"labels", attribution.labels},
                                 {"worst_error", attribution.worst_error},
                                 {"inexact", attribution.inexact}};
  if (!attribution.warning.empty()) json["warning"] = attribution.warning;
  return json;
}

}  // namespace thimble
