#include "train/runs/training.h"

#include "engine/kernels/arithmetic.h"
#include "engine/kernels/products/backend.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/tokenization.h"
#include "train/files/checkpoint.h"
#include "train/runs/jobs.h"
#include "train/step/generation.h"
#include "train/step/references.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns whether training is over, rather than interrupted.
bool ends(std::optional<Stopped> stopped) { return stopped && *stopped != Stopped::interrupted; }

std::string arithmetic() { return std::string(uses_openblas() ? "openblas" : kernels::arithmetic()); }

// Returns the config with the outputs of the run that is resumed, if there is one.
OpenConfig as_begun(OpenConfig config, const TrainOptions& options) {
  const RunDirectory run(options.directory);
  if (!options.resume || config.source == nullptr) return config;
  std::int64_t has_vocabulary =
      options.ranks->rank() == 0 && run.is_run() && run.data().outputs.empty() ? 1 : 0;
  options.ranks->broadcast(std::span(&has_vocabulary, 1));
  if (has_vocabulary > 0) config.outputs = Outputs::vocabulary;
  return config;
}

}  // namespace

TrainingRun::TrainingRun(const OpenConfig& config, const TrainOptions& options)
    : config_(as_begun(config, options)),
      directory_(options.directory),
      stop_after_(options.stop_after),
      observer_(options.observer != nullptr ? *options.observer : silent_),
      ranks_(*options.ranks),
      trainer_(config_, ranks_),
      evaluate_every_(evaluation_interval(config_.train, trainer_.dataset().size(Split::validation))) {
  if (directory_.empty()) return;
  if (ranks_.rank() == 0) open(options);
  if (options.resume) share_state();
}

TrainResult TrainingRun::run() {
  std::optional<Stopped> stopped = start();
  while (!stopped) stopped = record(trainer_.step());
  return finish(*stopped);
}

std::optional<Stopped> TrainingRun::start() {
  observer_.on_start(config_, result());
  const std::optional<Stopped> stopped = ending();
  if (!stopped && writer_ && state_.step > 0) {
    writer_->reopen(state_.step);
    log_changes();
  }
  complete(stopped);
  if (state_.step == 0) log_heads();
  return stopped;
}

void TrainingRun::complete(std::optional<Stopped> stopped) {
  const Checkpoint* from = writer_ && writer_->newest() ? &*writer_->newest() : nullptr;
  const bool is_final = from != nullptr && writer_->ended();
  const bool has_new_rate = from != nullptr && from->config.train.optimizer.lr != config_.train.optimizer.lr;
  // The run may have been killed after the best checkpoint of a step, before its other one, or before pruning.
  const bool is_best = from != nullptr && from->file->path() == writer_->best_path().string();
  if (ranks_.any(!ends(stopped) && has_new_rate))
    save_if_due(Stopped::interrupted);
  else if (ranks_.any(is_best || (from != nullptr && ends(stopped) && !is_final)))
    save_if_due(stopped);
  else if (ends(stopped))
    prune(true);
}

std::optional<Stopped> TrainingRun::record(const StepReport& step) {
  state_.train = step;
  state_.step = step.step;
  if (state_.arithmetic.find(arithmetic()) == std::string::npos)
    state_.arithmetic += (state_.arithmetic.empty() ? "" : ", ") + arithmetic();
  observer_.on_step(step);
  metrics("train", to_json(step));
  if (is_logging_step(state_.step)) log_heads();
  log_samples();
  if (state_.step == config_.train.steps || (evaluate_every_ > 0 && state_.step % evaluate_every_ == 0))
    validate();
  std::optional<Stopped> stopped = ending();
  if (!stopped && ranks_.any(observer_.wants_stop())) stopped = Stopped::interrupted;
  save_if_due(stopped);
  return stopped;
}

void TrainingRun::checkpoint() {
  // One that is there has the config of its training; that of now may have changed since.
  if (!ends(ending()) && !std::filesystem::exists(writer_->step_path(state_.step)))
    save_if_due(Stopped::interrupted);
}

void TrainingRun::open(const TrainOptions& options) {
  if (config_.train.log_heads) {
    require<ConfigError>(
        options.make_head_log != nullptr,
        "train.log_heads: TrainOptions.make_head_log is missing; set it to head_log of inspect");
    head_log_ = options.make_head_log(config_);
  }
  writer_.emplace(options, config_);
  state_.run = writer_->identity();
  if (writer_->newest()) load(*writer_->newest());
  require<ConfigError>(
      state_.step <= config_.train.steps,
      "train.steps ({}) must be at least the {} steps that {} has trained; raise it, or start a new run",
      config_.train.steps, state_.step, directory_.name());
  for (const std::string& reason : writer_->damaged()) observer_.on_damaged(reason);
  for (const std::string& remark : writer_->remarks()) observer_.on_remark(remark);
  writer_->begin();
  if (!writer_->newest()) return;
  for (const Difference& change : changes()) observer_.on_change(change.text);
  if (!ending() && !state_.arithmetic.empty() && state_.arithmetic.find(arithmetic()) == std::string::npos)
    observer_.on_remark(fmt::format(
        "the arithmetic is {} from step {} on, and was {} before, so the weights will be other ones; for the same, resume on a CPU like the first, with the same THIMBLE_TARGET",
        arithmetic(), state_.step + 1, state_.arithmetic));
}

std::vector<Difference> TrainingRun::changes() const {
  return differences(writer_->newest()->config, config_, "the checkpoint", "this config");
}

void TrainingRun::share_state() {
  std::string state = json_text(to_json(state_));
  ranks_.broadcast(state);
  state_ = run_state(parse_json(state));
  seconds_before_ = state_.seconds;
  trainer_.distribute_state();
}

void TrainingRun::metrics(std::string_view split, const Json& report) {
  if (!writer_) return;
  Json line{{"step", state_.step}, {"split", split}};
  line.update(report);
  writer_->append(line, seconds());
}

void TrainingRun::log_heads() {
  if (head_log_) metrics("heads", head_log_(std::as_const(trainer_).model().parameters().values()));
}

// Draws with the same random numbers each time, so that what changes is the model.
void TrainingRun::log_samples() {
  const std::int64_t every = config_.train.sample_every;
  if (every == 0 || state_.step % every != 0 || ranks_.rank() != 0) return;
  const Names& names = trainer_.dataset().names();
  const Tokenization form = config_.task.target_tokens();
  std::vector<std::string> texts;
  Json report;
  for (const Hypothesis& text :
       draw_texts(std::as_const(trainer_).model(), trainer_.dataset(), config_.train.seed)) {
    texts.push_back(token_text(names, text.tokens, form));
    if (form == Tokenization::bytes) report["bytes"].push_back(token_bytes(names, text.tokens));
  }
  observer_.on_samples(state_.step, texts);
  report["texts"] = texts;
  metrics("samples", report);
}

void TrainingRun::validate() {
  if (trainer_.dataset().size(Split::validation) == 0) return;
  try {
    state_.validation = trainer_.evaluate(Split::validation);
  } catch (const NumericError& e) {
    throw NumericError(fmt::format("after step {}: {}, and lower the learning rate or set train.clip_norm",
                                   state_.step, e.what()));
  }
  observer_.on_validation(state_.step, *state_.validation);
  metrics("validation", to_json(*state_.validation));
  if (state_.step == stop_after_) state_.stops[state_.step] = state_.validation->loss;
  ++state_.evaluations_since_best;
  if (state_.best_step > 0 && state_.validation->loss >= state_.best_loss) return;
  state_.best_step = state_.step;
  state_.best_loss = state_.validation->loss;
  state_.evaluations_since_best = 0;
  save(&RunWriter::best_path);
}

std::optional<Stopped> TrainingRun::ending() const {
  const std::optional<Stopped> ended = thimble::ending(state_, config_.train);
  if (!ended && stop_after_ > 0 && state_.step >= stop_after_) return Stopped::interrupted;
  return ended;
}

void TrainingRun::save_if_due(std::optional<Stopped> stopped) {
  const TrainConfig& train = config_.train;
  if (ends(stopped)) {
    save(&RunWriter::final_path);
  } else if (stopped || (train.checkpoint_every > 0 && state_.step % train.checkpoint_every == 0) ||
             (train.checkpoint_series && in_series(state_.step))) {
    save(&RunWriter::step_path, state_.step);
  } else {
    return;
  }
  prune(ends(stopped));
}

void TrainingRun::prune(bool ended) {
  if (writer_) writer_->prune(ended, config_.train.checkpoint_series);
}

template <class... Arguments>
void TrainingRun::save(std::filesystem::path (RunWriter::*path)(Arguments...) const, Arguments... arguments) {
  if (directory_.empty()) return;
  trainer_.require_equal_weights();
  if (!writer_) return;
  writer_->sync();
  state_.seconds = seconds();
  save_weights((*writer_.*path)(arguments...), trainer_.model().parameters(),
               {{"format", kRunFormat},
                {"step", std::to_string(state_.step)},
                {"weights_hash", trainer_.model().parameters().hash()},
                {"config", to_yaml(config_)},
                {"data", json_text(to_json(writer_->data()))},
                {"state", json_text(to_json(state_))}},
               &trainer_.optimizer());
}

void TrainingRun::log_changes() {
  const Json from = to_json(writer_->newest()->config), to = to_json(config_);
  for (const Difference& change : changes()) {
    if (!change.key.starts_with("train.") || change.key == "train.threads") continue;
    const auto at = pointer_of(change.key);
    metrics("change", {{"key", change.key}, {"from", from.value(at, Json())}, {"to", to.value(at, Json())}});
  }
}

void TrainingRun::load(const Checkpoint& checkpoint) {
  load_checkpoint(*checkpoint.file, trainer_.model().parameters(), trainer_.optimizer());
  trainer_.optimizer().set_steps(checkpoint.state.step);
  state_ = checkpoint.state;
  seconds_before_ = state_.seconds;
}

TrainResult TrainingRun::finish(Stopped stopped) {
  TrainResult done = result();
  done.stopped = stopped;
  if (stopped == Stopped::interrupted) return done;
  if (!is_logging_step(state_.step)) log_heads();
  if (trainer_.dataset().size(Split::test) > 0) {
    done.test = trainer_.evaluate(Split::test);
    metrics("test", to_json(*done.test));
  }
  done.target_missed = has_target(config_.train.target) && !reached(config_.train.target, done.validation);
  const std::span<Real> values = trainer_.model().parameters().values();
  const std::vector<Real> last(values.begin(), values.end());
  if (load_best()) {
    done.final = {done.validation, done.test, done.weights_hash};
    done.validation = trainer_.evaluate(Split::validation);
    if (done.test) done.test = trainer_.evaluate(Split::test);
    done.weights_hash = trainer_.model().parameters().hash();
    std::ranges::copy(last, values.begin());
  }
  done.seconds = seconds();
  if (ranks_.rank() == 0) add_references(done);
  if (writer_) writer_->finish(done);
  return done;
}

bool TrainingRun::load_best() {
  bool is_there = false;
  try {
    if (writer_ && state_.has_best_result(config_.train.patience)) {
      std::vector<std::string> ignored;  // which resuming remarks
      const Checkpoint best = directory_.checkpoint("best", ignored);
      require<CheckpointError>(best.state.step == state_.best_step, "{}: holds step {}, not {}",
                               best.file->path(), best.state.step, state_.best_step);
      load_weights(*best.file, trainer_.model().parameters());
      is_there = true;
    }
  } catch (const Error& e) {
    observer_.on_remark(fmt::format("{}; the result of the run is that of its last step", e.what()));
  }
  if (!ranks_.any(is_there)) return false;
  trainer_.distribute_state();
  return true;
}

void TrainingRun::add_references(TrainResult& done) const {
  const ReferenceModels models(trainer_.dataset());
  if (done.validation)
    done.validation->references = models.losses(Split::validation, done.validation->sequences);
  if (done.test) done.test->references = models.losses(Split::test, done.test->sequences);
}

TrainResult TrainingRun::result() const {
  const Dataset& data = trainer_.dataset();
  TrainResult so_far;
  so_far.steps = state_.step;
  so_far.train = state_.train;
  so_far.validation = state_.validation;
  so_far.best_step = state_.best_step;
  so_far.best_loss = state_.best_loss;
  so_far.shared_validation = data.shared_with_training(Split::validation);
  so_far.shared_test = data.shared_with_training(Split::test);
  so_far.weights_hash = trainer_.model().parameters().hash();
  so_far.arithmetic = state_.arithmetic.empty() ? arithmetic() : state_.arithmetic;
  so_far.parameters = static_cast<std::int64_t>(trainer_.model().parameters().count());
  so_far.seconds = seconds();
  so_far.threads = trainer_.threads();
  so_far.ranks = ranks_.size();
  so_far.directory = directory_.name();
  return so_far;
}

}  // namespace THIMBLE_PRECISION

template <>
TrainResult run_training<Real>(const OpenConfig& config, const TrainOptions& options) {
  return TrainingRun(config, options).run();
}

}  // namespace thimble
