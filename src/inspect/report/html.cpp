#include "thimble/inspect/html.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "inspect/report/page.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/json.h"

namespace thimble {

namespace {

constexpr std::size_t kTwoByteBudget = 2 << 20;  // bytes of base64 for the attention of all examples
constexpr std::size_t kSeriesBudget = 2 << 20;   // of all checkpoints

Json packed_matrix(const DoubleMatrix& matrix) {
  if (matrix.values.empty()) return nullptr;
  double largest = 0;
  for (const double x : matrix.values) {
    require<NumericError>(std::isfinite(x), "html: a matrix of tokens holds {}: it must be finite", x);
    largest = std::max(largest, std::abs(x));
  }
  Json out = page::packed(matrix.values, {matrix.rows, matrix.cols}, 2, largest > 0 ? 32767 / largest : 0);
  out["scale"] = largest;
  return out;
}

// Packs means of weights, with 0 for cells of no sequence, which the page leaves out.
Json packed_means(std::vector<double> means, std::span<const std::int64_t> counts, std::int64_t columns,
                  bool from_end) {
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[from_end ? counts.size() - 1 - i : i] == 0) means[i] = 0;
  return page::packed_weights(means, {std::ssize(means) / columns, columns});
}

// Sets the maps of a name, from the start and, where there are any, from the end.
void pack_means(Json& json, const std::string& name, const PositionMeans& means,
                std::span<const std::int64_t> counts, std::int64_t columns) {
  json[name] = packed_means(means.from_start, counts, columns, false);
  if (!means.from_end.empty()) json[name + "_from_end"] = packed_means(means.from_end, counts, columns, true);
}

// Returns the checkpoints of a run, as many as fit into the budget of bytes with one example each, evenly
// spaced and with the last, and as many examples as then fit.
Json packed_series(const std::vector<SeriesStep>& series, const InspectReport& report) {
  if (series.empty() || series[0].examples.empty()) return nullptr;
  const std::size_t bytes = series[0].examples[0].attention.size() * 4 / 3 + 1;
  const std::size_t fit = std::max<std::size_t>(2, kSeriesBudget / bytes);
  const std::size_t steps = std::min(fit, series.size());
  const std::size_t examples = std::clamp<std::size_t>(fit / steps, 1, series[0].examples.size());
  Json out{{"checkpoints", series.size()},
           {"sequences", series[0].snapshot.sequences},
           {"examples", Json::array()},
           {"steps", Json::array()}};
  for (std::size_t k = 0; k < examples; ++k)
    out["examples"].push_back(sequence_json(series[0].examples[k], report.tokens));
  for (std::size_t i = 0; i < steps; ++i) {
    const SeriesStep& step = series[steps > 1 ? i * (series.size() - 1) / (steps - 1) : 0];
    Json& entry = out["steps"].emplace_back(
        Json{{"step", step.snapshot.step}, {"loss", step.snapshot.loss}, {"heads", Json::array()}});
    for (const HeadSnapshot::Head& head : step.snapshot.heads) entry["heads"].push_back(head.scores);
    for (std::size_t k = 0; k < examples; ++k)
      entry["attention"].push_back(page::packed_attention(step.examples[k], report.config.model, 1));
  }
  return out;
}

// Returns the run and its data file, or the task of data that are generated: "names, names.txt".
std::string report_name(const InspectReport& report) {
  const TaskConfig& task = report.config.task;
  const std::string data =
      task.file.empty() ? task.name : std::filesystem::path(task.file).filename().string();
  return report.run.empty() || report.run == data ? data : report.run + ", " + data;
}

// Returns the report for the page: maps are packed, and the user's own sequence is the first example.
Json packed_report(const InspectReport& report, const ForwardTrace* own) {
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  Json json = to_json(report);
  json["score_table"] = score_table();
  json["name"] = report_name(report);
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    const HeadReport& head = report.heads[i];
    const auto layer = static_cast<std::size_t>(head.effects.id.layer);
    Json& out = json["heads"][i];
    pack_means(out, "mean_weights", head.mean_weights, report.mean_counts[layer], report.keys(layers[layer]));
    out["circuits"]["qk_tokens"] = packed_matrix(head.circuits.qk_tokens);
    out["circuits"]["ov_tokens"] = packed_matrix(head.circuits.ov_tokens);
  }
  if (!report.rollout.from_start.empty())
    pack_means(json, "rollout", report.rollout, report.mean_counts[0], report.length);
  constexpr std::size_t kCountBytes = 4;
  for (std::size_t l = 0; l < report.mean_counts.size(); ++l) {
    const std::vector<double> counts(report.mean_counts[l].begin(), report.mean_counts[l].end());
    json["mean_counts"][l] =
        page::packed(counts, {report.queries(layers[l]), report.keys(layers[l])}, kCountBytes, 1);
  }
  std::vector<const ForwardTrace*> traces;
  if (own != nullptr) traces.push_back(own);
  for (const ForwardTrace& example : report.examples) traces.push_back(&example);
  std::size_t numbers = 0;
  for (const ForwardTrace* trace : traces) numbers += trace->attention.size();
  const std::size_t width = numbers * 2 / 3 * 4 <= kTwoByteBudget ? 2 : 1;
  Json& examples = json["examples"] = Json::array();
  for (const ForwardTrace* trace : traces) {
    examples.push_back(page::packed_trace(*trace, report.config.model, report.tokens, width));
    for (const DoubleMatrix& norms : trace->value_norms)
      examples.back()["value_norms"].push_back(packed_matrix(norms));
  }
  if (own != nullptr) examples[0].update({{"own", true}, {"finished", own->finished}});
  if (Json series = packed_series(report.series, report); !series.is_null())
    json["series"] = std::move(series);
  return json;
}

}  // namespace

std::string html_page(const InspectReport& report, const ForwardTrace* own, const Json& more) {
  Json json = packed_report(report, own);
  json.update(more);
  return page::document("inspect", json, page::inspect_script());
}

}  // namespace thimble
