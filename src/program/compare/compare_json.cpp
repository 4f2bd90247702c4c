#include <algorithm>

#include "inspect/effects/head_names.h"
#include "program/compare/compare.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

Json spread_json(const Spread& values) {
  if (values.count == 0) return nullptr;
  return {{"median", values.median}, {"min", values.min}, {"max", values.max}, {"count", values.count}};
}

Json values_json(const std::vector<ComparedValue>& rows) {
  Json out = Json::array();
  for (const ComparedValue& row : rows)
    out.push_back({{"key", row.key}, {"values", row.values}, {"differs", row.differs}});
  return out;
}

Json heads_json(const ComparedHeads& compared, std::span<const ModelConfig> models) {
  Json out{{"first", 0}, {"second", compared.run}};
  const HeadComparison& heads = compared.heads;
  if (!heads.obstacle.empty()) {
    out["obstacle"] = heads.obstacle;
    return out;
  }
  out["sequences"] = heads.sequences;
  out["elsewhere_sequences"] = heads.elsewhere;
  out["chance_models"] = kChanceModels;
  out["matches"] = Json::array();
  const std::vector<AttentionLayer> first = attention_layers(models[0]),
                                    second = attention_layers(models[compared.run]);
  for (const HeadMatch& match : heads.matches)
    out["matches"].push_back({{"head", head_json(first, match.head)},
                              {"match", match.match ? head_json(second, *match.match) : Json()},
                              {"overlap", match.overlap},
                              {"elsewhere", match.elsewhere},
                              {"chance", match.chance},
                              {"queries", match.queries},
                              {"elsewhere_queries", match.elsewhere_queries}});
  out["unmatched"] = Json::array();
  for (const HeadId id : heads.unmatched) out["unmatched"].push_back(head_json(second, id));
  return out;
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json out{{"runs", Json::array()},
           {"config", values_json(comparison.config)},
           {"records", values_json(comparison.records)},
           {"data_differs", comparison.data_differs},
           {"results", Json::array()},
           {"curves", Json::array()},
           {"heads", Json::array()}};
  for (const ComparedRun& run : comparison.runs) {
    Json directories = Json::array();
    for (const fs::path& directory : run.directories) directories.push_back(directory.string());
    out["runs"].push_back({{"name", run.name},
                           {"directories", directories},
                           {"parameters", run.parameters},
                           {"failed", run.failed}});
  }
  for (const ComparedResult& result : comparison.results) {
    Json runs = Json::array(), best = Json::array();
    for (std::size_t i = 0; i < result.runs.size(); ++i) {
      runs.push_back(spread_json(result.runs[i]));
      if (result.is_best[i]) best.push_back(i);
    }
    std::string metric(result.metric.substr(1));
    std::ranges::replace(metric, '/', '.');
    out["results"].push_back({{"metric", metric}, {"runs", runs}, {"best", best}});
  }
  for (const ComparedCurve& curve : comparison.curves) {
    Json runs = Json::array();
    for (const std::vector<CurveSpread>& points : curve.runs) {
      Json& list = runs.emplace_back(Json::array());
      for (const CurveSpread& point : points) {
        Json& entry = list.emplace_back(Json{{"step", point.step}});
        entry.update(spread_json(point.values));
      }
    }
    out["curves"].push_back({{"split", curve.split}, {"metric", curve.metric}, {"runs", runs}});
  }
  for (const ComparedHeads& heads : comparison.heads)
    out["heads"].push_back(heads_json(heads, comparison.models));
  return out;
}

}  // namespace thimble
