#include "thimble/inspect/inspect.h"

#include <filesystem>

#include "inspect/effects/head_names.h"
#include "inspect/report/inspect_run.h"
#include "inspect/scores/require_heads.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/task.h"
#include "train/config/with_precision.h"

namespace thimble {

namespace {

// Returns whether the log counts all queries of the last block, as versions before 0.4 did, where only those with a label can
// reach the loss.
bool counts_all_queries(const InspectReport& report) {
  if (report.timeline.steps.empty() || report.timeline.steps.back().heads.empty()) return false;
  const HeadSnapshot& step = report.timeline.steps.back();
  const auto logged = step.heads.back().eligible.find("distance");
  return find_score(report.heads.back().scores, "distance").eligible == report.baseline.labels &&
         logged != step.heads.back().eligible.end() && logged->second != step.labels;
}

// Returns the model with hypotheses in place of its data.
ModelSource on_hypotheses(ModelSource model, const std::string& file) {
  OpenConfig& config = model.config;
  DataRecord record = record_of(config);
  record.length = std::max(record.length, config.model.trained_length);
  config.source = hypotheses_source(file, config.task, layout_of(config.model), std::move(record));
  config.data = {.train = kAll, .validation = kAll, .test = kAll};
  return model;
}

}  // namespace

InspectReport inspect(const ModelSource& trained, const InspectOptions& options) {
  require_weights(trained.config.model);
  const ModelSource model = options.hypotheses.empty() ? trained : on_hypotheses(trained, options.hypotheses);
  InspectReport report =
      with_precision(model.config, [&]<class R>() { return run_inspection<R>(model, options); });
  report.hypotheses = std::filesystem::path(options.hypotheses).filename().string();
  if (!model.run.empty()) {
    report.timeline = read_timeline(model.run, model.state);
    report.run = std::filesystem::absolute(model.run.path()).lexically_normal().filename().string();
    if (report.run.empty()) report.run = model.run.name();
  }
  for (const HeadReport& head : report.heads)
    report.timeline.patterns.push_back(find_pattern(head.scores).score);
  if (counts_all_queries(report))
    report.timeline.remarks.emplace_back(
        "the log of heads was written before thimble 0.4: scores of the last block count all queries, not only those that can reach the loss");
  if (options.page) report.series = read_checkpoint_series(model, kSeriesExamples, report.timeline.remarks);
  return report;
}

AblationReport ablate(const ModelSource& model, std::span<const HeadId> heads, std::int64_t sequences) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_ablation<R>(model, heads, sequences); });
}

namespace {

Json joint_json(const InspectReport& report, std::span<const AttentionLayer> layers) {
  const JointReport& joint = report.joint;
  const auto removable = [&](std::int64_t n) { return report.scale.has_smallest() ? Json(n) : Json(); };
  Json json = {{"sequences", joint.sequences},
               {"pairs", Json::array()},
               {"group_sequences", joint.group_sequences},
               {"groups", Json::array()},
               {"tested", joint.tested},
               {"exact", joint.exact},
               {"greedy_ablation", Json::array()},
               {"removable",
                {{"by_importance", removable(joint.removable_by_importance)},
                 {"greedily", removable(joint.removable_greedily)},
                 {"alone", removable(joint.removable_alone)}}}};
  for (const PairEffect& pair : joint.pairs) json["pairs"].push_back(to_json(pair, layers));
  for (const JointEffect& group : joint.groups) json["groups"].push_back(to_json(group, layers));
  for (const RemovalStep& step : joint.greedy) json["greedy_ablation"].push_back(to_json(step, layers));
  return json;
}

Json model_json(const Config& config) {
  const Json all = to_json(config)["model"];
  if (config.model.kind == ModelKind::recurrent)
    return {{"kind", all["kind"]}, {"d_model", all["d_model"]}, {"score", all["attention"]["score"]}};
  return {{"kind", all["kind"]},
          {"layers", config.model.layers},
          {"heads", all["heads"]},
          {"d_model", config.model.d_model},
          {"norm", all["norm"]},
          {"mask", all["attention"]["mask"]},
          {"output", all["output"]["per"]},
          {"pooling", all["output"]["pooling"]}};
}

Json report_json(const HeadReport& head, std::span<const AttentionLayer> layers, std::int64_t keys) {
  const AttentionLayer& layer = layers[static_cast<std::size_t>(head.effects.id.layer)];
  Json json = head_json(layers, head.effects.id);
  json.update({{"label", head.label.name},
               {"verdict", verdict_name(head.label.verdict)},
               {"group", Json::array()},
               {"sentence", head.label.sentence},
               {"summary", head.label.summary},
               {"cells", head.cells ? to_json(*head.cells) : Json()},
               {"scores", to_json(head.scores)},
               {"ablation", to_json(head.effects)},
               {"importance", to_json(head.effects.importance)},
               {"circuits", to_json(head.circuits)},
               {"mean_weights", map_json(head.mean_weights.from_start, keys)}});
  for (const HypothesisTest& test : head.hypotheses) json["hypotheses"].push_back(to_json(test));
  for (const HeadId& id : head.label.group) json["group"].push_back(head_json(layers, id));
  if (!head.mean_weights.from_end.empty())
    json["mean_weights_from_end"] = map_json(head.mean_weights.from_end, keys);
  if (!layer.stack.empty()) json["attention"] = layer.name();
  return json;
}

// Returns the accuracy among the answers that can be known, how many these are, and why others cannot; null where that is not
// stated.
Json knowable_json(const InspectReport& report) {
  std::int64_t labels = 0, correct = 0;
  for (const SequenceResult& one : report.baseline.per_sequence) {
    labels += one.knowable;
    correct += one.knowable_correct;
  }
  if (labels == 0) return nullptr;
  return {{"accuracy", static_cast<double>(correct) / static_cast<double>(labels)},
          {"labels", labels},
          {"reason", find_task(report.config.task.name).unknowable}};
}

}  // namespace

Json to_json(const InspectReport& report) {
  const auto of_labels = [&](double x) { return report.baseline.labels > 0 ? Json(x) : Json(); };
  Json json = {{"task", report.config.task.name},
               {"task_summary", find_task(report.config.task.name).summary},
               {"split", report.hypotheses.empty() ? split_name(Split::test) : report.hypotheses},
               {"sequences", report.baseline.sequences},
               {"length", report.length},
               {"tokens", report.tokens},
               {"model", model_json(report.config)},
               {"weights_hash", report.weights_hash},
               {"baseline",
                {{"loss", of_labels(report.baseline.loss)},
                 {"accuracy", of_labels(report.baseline.accuracy)},
                 {"sequence_accuracy", of_labels(report.baseline.sequence_accuracy)},
                 {"sequences", report.baseline.sequences},
                 {"labels", report.baseline.labels},
                 {"knowable", knowable_json(report)}}},
               {"scale", to_json(report.scale)},
               {"unpaired", report.unpaired},
               {"heads", Json::array()},
               {"cumulative_ablation", Json::array()},
               {"attribution", to_json(report.attribution)},
               {"mean_counts", Json::array()},
               {"rollout", nullptr},
               {"logit_lens", to_json(report.logit_lens, report.config.model)},
               {"examples", Json::array()}};
  for (const PositionLoss& at : report.position_losses)
    json["loss_by_position"].push_back({{"loss", at.loss}, {"labels", at.labels}});
  json.update(to_json(report.timeline));
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  json["joint_ablation"] = joint_json(report, layers);
  if (report.source_length > 0) {
    json["source_length"] = report.source_length;
    json["attentions"] = to_json(layers);
  }
  for (std::size_t l = 0; l < report.mean_counts.size(); ++l)
    json["mean_counts"].push_back(map_json(report.mean_counts[l], report.keys(layers[l])));
  if (!report.rollout.from_start.empty())
    json["rollout"] = map_json(report.rollout.from_start, report.length);
  if (!report.rollout.from_end.empty())
    json["rollout_from_end"] = map_json(report.rollout.from_end, report.length);
  for (const HeadReport& head : report.heads) {
    const AttentionLayer& layer = layers[static_cast<std::size_t>(head.effects.id.layer)];
    json["heads"].push_back(report_json(head, layers, report.keys(layer)));
  }
  for (const RemovalStep& step : report.cumulative_ablation)
    json["cumulative_ablation"].push_back(to_json(step, layers));
  for (const ForwardTrace& trace : report.examples)
    json["examples"].push_back(example_json(trace, report.config.model, report.tokens));
  return json;
}

}  // namespace thimble
