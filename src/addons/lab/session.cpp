#include "addons/lab/session.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "addons/lab/history.h"
#include "addons/lab/interventions.h"
#include "inspect/effects/head_names.h"
#include "inspect/effects/measure_effects.h"
#include "inspect/scores/require_heads.h"
#include "inspect/timeline/head_log.h"
#include "inspect/trace/trace_observer.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/listing.h"
#include "thimble/train/run.h"
#include "thimble/train/tokenization.h"
#include "train/files/checkpoint.h"
#include "train/files/stopwatch.h"
#include "train/runs/training.h"
#include "train/step/cost.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Other values in place of those of a buffer, for the lifetime of the object.
class Exchanged {
 public:
  Exchanged(std::span<Real> values, std::span<const Real> others)
      : values_(values), saved_(values.begin(), values.end()) {
    std::ranges::copy(others, values.begin());
  }
  ~Exchanged() { std::ranges::copy(saved_, values_.begin()); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  std::span<Real> values_;
  std::vector<Real> saved_;
};

class Run final : public lab::Session, private TrainObserver {
 public:
  Run(const OpenConfig& config, const lab::SessionOptions& options)
      : config_(config), options_(options), warnings_(options.warnings) {
    run_.emplace(config, TrainOptions{.directory = options.directory,
                                      .resume = options.resume,
                                      .observer = this,
                                      .make_head_log = [this](const OpenConfig&) { return head_log(); },
                                      .new_rate = true});
    require<CheckpointError>(damaged_.empty() || run_->state().step > 0,
                             "no checkpoint of the run is intact: {}", fmt::join(damaged_, "; "));
    for (const std::string& reason : damaged_)
      warnings_.push_back(fmt::format("{}; this is the checkpoint before it", reason));
    if (options.weights) load_weights(*options.weights, model().parameters());
    if (options.shards_only) return;
    if (!trained()) stopped_ = run_->start();
    keep();
    if (run_->state().step == 0) log_heads();
  }

  const OpenConfig& config() const override { return config_; }

  Json describe() override {
    const Dataset& data = dataset();
    Json json{{"step", run_->state().step},
              {"config", to_json(config_)},
              {"yaml", to_yaml(config_)},
              {"parameters", model().parameters().count()},
              {"attentions", attentions()},
              {"vocabulary", data.names()},
              {"length", data.length()},
              {"source_length", data.source_length()},
              {"output", to_json(config_)["model"]["output"]["per"]},
              {"shards", config_.train.shards},
              {"steps", config_.train.steps},
              {"memory_bytes", training_memory(config_).total()}};
    if (data.size(Split::validation) > 0 && !options_.shards_only) {
      const EvalResult result = run_->trainer().evaluate(Split::validation);
      json["validation"] = to_json(result);
      if (result.chance) json["chance"] = *result.chance;
      if (result.lowest_loss) json["lowest_loss"] = *result.lowest_loss;
    }
    if (stopped_) json["stopped"] = stopped_name(*stopped_);
    if (trained()) json["trained"] = true;
    if (!warnings_.empty()) json["warnings"] = warnings_;
    return json;
  }

  Json step(double milliseconds, std::int64_t steps) override {
    require_trainable();
    const Stopwatch timer;
    std::int64_t made = 0;
    do {
      record(run_->trainer().step());
      ++made;
    } while (!stopped_ && made < steps && 1000 * timer.seconds() < milliseconds);
    return take_reports(timer.seconds());
  }

  void compute(const Range& shards) override {
    require_trainable();
    timer_.emplace();
    run_->trainer().compute(shards);
  }

  Json update() override {
    const StepReport report = run_->trainer().update();
    if (options_.shards_only) return Json::object();
    record(report);
    return take_reports(timer_ ? timer_->seconds() : 0);
  }

  Json buffers() override {
    const auto bytes = [](const void* data, std::size_t size) {
      return Json{reinterpret_cast<std::uintptr_t>(data), size};
    };
    Json json = Json::array();
    Trainer& trainer = run_->trainer();
    for (std::size_t s = 0; s < trainer.shards().size(); ++s) {
      const std::span<Real> gradients = trainer.shard_gradients(s);
      json.push_back({{"gradients", bytes(gradients.data(), gradients.size_bytes())},
                      {"sums", bytes(&trainer.shard_sums(s), sizeof(EvalSums))}});
    }
    return json;
  }

  Json evaluate(Split split, std::int64_t limit) override {
    return to_json(run_->trainer().evaluate(split, limit));
  }

  Json examples(Split split, std::int64_t first, std::int64_t count) override {
    const Dataset& data = dataset();
    const Names& names = data.names();
    const bool endless = split == Split::train && data.size(split) == 0;
    if (!endless) count = std::min(count, data.size(split) - first);
    if (count <= 0) return Json::array();
    Batch batch;
    data.fill(split, first, count, batch);
    const auto named = [&](std::span<const std::int32_t> tokens) {
      Json list = Json::array();
      for (const std::int32_t token : tokens)
        list.push_back(token == kIgnore ? Json() : Json(names[static_cast<std::size_t>(token)]));
      return list;
    };
    Json list = Json::array();
    const std::size_t outputs = batch.labels.size() / static_cast<std::size_t>(count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<const std::int32_t> tokens = batch.tokens_of(i);
      const auto targets =
          std::span(batch.labels)
              .subspan(static_cast<std::size_t>(i) * outputs, std::min(tokens.size(), outputs));
      std::vector<std::int32_t> answers;
      for (const std::int32_t output : targets) answers.push_back(data.token_of(output));
      Json& entry = list.emplace_back(Json{{"tokens", named(tokens)}, {"targets", named(answers)}});
      if (batch.source_length > 0) entry["source"] = named(batch.source_of(i));
      entry["text"] = token_text(names, batch.input_of(i), config_.task.input_tokens());
    }
    return list;
  }

  Json trace(const Json& request) override {
    const std::vector<AttentionLayer>& layers = model().attention_layers();
    const ModelSource names_only{config_, {}};
    const auto tokens = [&](const Json& text) { return input_tokens(names_only, text.get<std::string>()); };
    const auto head = [&](const Json& name) {
      const std::vector<HeadId> found = parse_heads(name.get<std::string>(), layers);
      require<ConfigError>(found.size() == 1, "head: {} must be one head", name.get<std::string>());
      return found.front();
    };
    const std::vector<std::int32_t> input = tokens(request.at("input"));
    const auto list = [&](const char* key) { return request.value(key, Json::array()); };
    return with_weights(request.value("at", Json()), [&] {
      Interventions hooks;
      for (const Json& row : list("attention"))
        hooks.rows.push_back({head(row.at("head")), row.at("query").get<std::int64_t>(),
                              row.at("weights").get<std::vector<double>>()});
      for (const Json& patch : list("patch")) {
        Interventions donor;
        trace_tokens(model(), dataset(), tokens(patch.at("input")), &donor);
        hooks.heads.push_back(patch_head(layers, head(patch.at("head")), std::move(donor.outputs)));
      }
      for (const Json& name : list("ablate"))
        hooks.heads.push_back(replace_heads(layers, std::array{head(name)}));
      const bool intervenes = !hooks.rows.empty() || !hooks.heads.empty();
      const bool reads = request.contains("vectors");
      if (!hooks.rows.empty()) {
        Interventions sizes;
        check_rows(hooks.rows, trace_tokens(model(), dataset(), input, &sizes));
      }
      const ForwardTrace trace =
          trace_tokens(model(), dataset(), input, intervenes || reads ? &hooks : nullptr);
      Json json = to_json(trace, config_.model, dataset().names());
      if (!reads) return json;
      Json& vectors = json["vectors"] = Json::array();
      for (const Json& entry : request.at("vectors"))
        vectors.push_back(vectors_of(model(), hooks.projections, head(entry.at("head")),
                                     entry.at("token").get<std::int64_t>()));
      return json;
    });
  }

  Json scores(const Json& at) override {
    require_weights(config_.model);
    return head_log()(weights(at));
  }

  Json ablate(const std::string& heads, std::int64_t sequences, const Json& at) override {
    require_heads(config_.model);
    const std::vector<HeadId> set = parse_heads(heads, model().attention_layers());
    if (!evaluator_) evaluator_.emplace(config_);
    evaluator_->select(Split::test, sequences);
    std::ranges::copy(weights(at), evaluator_->model().parameters().values().begin());
    return to_json(measure_ablation(*evaluator_, set));
  }

  Json inspect(std::int64_t sequences) override {
    const std::filesystem::path file = "/weights.safetensors";
    save_weights(file, model().parameters(), {});
    return to_json(thimble::inspect({.config = config_, .weights = file, .run = options_.directory},
                                    {.sequences = sequences}));
  }

  Json history() const override {
    Json steps = Json::array();
    for (const auto& entry : history_.steps()) steps.push_back(entry.first);
    return {{"steps", steps}, {"bytes", history_.bytes()}};
  }

  Json hash() const override {
    return {{"weights_hash", model().parameters().hash()}, {"step", run_->state().step}};
  }

  void checkpoint() override {
    require<ConfigError>(!trained(), "save: only a run can be saved; this model was opened without one");
    run_->checkpoint();
  }

  void take_history(lab::Session& from) override {
    history_ = std::move(static_cast<Run&>(from).history_);
    keep();
  }

 private:
  Model& model() { return run_->trainer().model(); }
  const Model& model() const { return run_->trainer().model(); }
  const Dataset& dataset() const { return run_->trainer().dataset(); }
  bool trained() const { return options_.weights != nullptr; }

  void require_trainable() const {
    require<ConfigError>(!trained(),
                         "step: these weights have no run to go on with; open their config to train anew");
    require<ConfigError>(!stopped_,
                         "step: training has ended ({}); open the config anew, or raise train.steps",
                         stopped_ ? stopped_name(*stopped_) : "");
  }

  // Returns the head log of the session, which also serves train.log_heads.
  HeadLog head_log() {
    if (!head_log_) head_log_ = thimble::head_log(config_);
    return [this](WeightsView view) {
      Json line = head_log_(view);
      if (is_training_) last_heads_ = line;
      return line;
    };
  }

  bool can_log_heads() const {
    return config_.data.validation > 0 && !model().attention_layers().empty() &&
           kind_of(config_.model.attention.score).softmax;
  }

  // Adds the heads of the present step to the reports, as the run has logged them or else anew.
  void log_heads() {
    if (!can_log_heads()) return;
    const std::int64_t step = run_->state().step;
    Json line{{"step", step}};
    line.update(last_heads_.is_null() ? head_log()(weights({})) : std::exchange(last_heads_, Json()));
    heads_.push_back(std::move(line));
  }

  void record(const StepReport& report) {
    is_training_ = true;
    stopped_ = run_->record(report);
    is_training_ = false;
    if (is_logging_step(report.step)) {
      keep();
      log_heads();
    }
    if (!stopped_) return;
    result_ = to_json(run_->finish(*stopped_));
    if (is_logging_step(report.step)) return;
    keep();
    log_heads();
  }

  void keep() { history_.keep(run_->state().step, weights({})); }

  void on_start(const OpenConfig& config, const TrainResult& so_far) override {
    for (const std::string& line : shared_remarks(config, so_far)) warnings_.push_back(line);
  }
  void on_damaged(const std::string& reason) override { damaged_.push_back(reason); }
  void on_remark(const std::string& remark) override { warnings_.push_back(remark); }
  void on_step(const StepReport& report) override { reports_.push_back(to_json(report)); }
  void on_validation(std::int64_t step, const EvalResult& result) override {
    Json line{{"step", step}};
    line.update(to_json(result));
    validations_.push_back(std::move(line));
  }

  Json take_reports(double seconds) {
    Json json{{"step", run_->state().step},
              {"reports", std::exchange(reports_, Json::array())},
              {"validations", std::exchange(validations_, Json::array())},
              {"heads", std::exchange(heads_, Json::array())},
              {"seconds", seconds}};
    json["sequences"] = std::ssize(json["reports"]) * config_.train.batch;
    if (stopped_) {
      json["stopped"] = stopped_name(*stopped_);
      json["result"] = result_;
    }
    return json;
  }

  std::span<const Real> weights(const Json& at) const {
    if (at.is_null()) return model().parameters().values();
    return history_.at(at.get<std::int64_t>());
  }

  // Returns f() with other weights in the model.
  template <class F>
  Json with_weights(const Json& at, const F& f) {
    if (at.is_null()) return f();
    const Exchanged others(model().parameters().values(), weights(at));
    return f();
  }

  Json attentions() const {
    Json list = Json::array();
    for (const AttentionLayer& layer : model().attention_layers())
      list.push_back({{"name", layer.name()},
                      {"title", layer.title()},
                      {"heads", layer.heads},
                      {"queries", layer.queries_source ? "source" : "tokens"},
                      {"keys", layer.keys_source ? "source" : "tokens"},
                      {"causal", layer.causal},
                      {"cross", layer.cross()}});
    return list;
  }

  void check_rows(const std::vector<Interventions::Row>& rows, const ForwardTrace& trace) const {
    for (const Interventions::Row& row : rows) {
      const AttentionLayer& layer = model().attention_layers()[static_cast<std::size_t>(row.head.layer)];
      require<ConfigError>(row.query >= 0 && row.query < trace.queries(layer),
                           "attention: query {} must be from 0 to {}", row.query, trace.queries(layer) - 1);
      require<ConfigError>(std::ssize(row.weights) == trace.keys(layer),
                           "attention: a row of {} weights, but there are {} keys", row.weights.size(),
                           trace.keys(layer));
      require<ConfigError>(std::ranges::all_of(row.weights, [](double x) { return std::isfinite(x); }),
                           "attention: weights must be finite numbers");
    }
  }

  const OpenConfig config_;
  const lab::SessionOptions options_;
  std::vector<std::string> damaged_;   // why checkpoints were passed over
  std::vector<std::string> warnings_;  // for the user
  std::optional<TrainingRun> run_;
  std::optional<Stopped> stopped_;
  std::optional<Stopwatch> timer_;  // of the step that update() ends
  HeadLog head_log_;
  std::optional<Evaluator> evaluator_;  // of ablations
  History history_;
  bool is_training_ = false;
  Json reports_ = Json::array(), validations_ = Json::array(), heads_ = Json::array();
  Json last_heads_, result_;
};

}  // namespace

}  // namespace THIMBLE_PRECISION

template <>
std::unique_ptr<lab::Session> lab::make_session<Real>(const OpenConfig& config,
                                                      const SessionOptions& options) {
  return std::make_unique<Run>(config, options);
}

}  // namespace thimble
