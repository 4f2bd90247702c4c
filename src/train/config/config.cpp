#include "thimble/train/config.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/config/fields.h"
#include "train/config/model_rules.h"
#include "train/config/reader.h"
#include "train/config/report.h"
#include "train/config/yaml.h"
#include "train/files/progress.h"
#include "train/files/text/text.h"

namespace thimble {
namespace {

using config::Report;

void check_task(Config& c, Report& report) {
  const Task& task = find_task(c.task.name);
  const config::Section root = config::describe(c);
  for (const config::Field& field : root.find("task")->section()->fields) {
    const std::string key = fmt::format("task.{}", field.key);
    report.conflict_if(!field.applies && report.was_given(key), {key, "task.name"},
                       "{} has no effect on task {}; remove it{}", key, c.task.name,
                       task.keys.empty() ? "" : fmt::format(", or use {}", fmt::join(task.keys, ", ")));
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const std::string key = fmt::format("data.{}", split_name(split));
    report.conflict_if(task.open == nullptr && c.data.size(split) == kAll, {key, "task.name"},
                       "all requires a data file, which task {} has not; set a number", c.task.name);
  }
  report.conflict_if(
      task.open != nullptr && c.data.train == 0, {"data.train", "task.name"},
      "0 requires a task that generates sequences; set data.train to all, or to a number of lines");
  report.conflict_if(
      task.open != nullptr && !c.task.vocabulary_file.empty() && c.task.options.has_unknown(),
      {c.task.options.min_count > 1 ? "task.min_count" : "task.vocabulary", "task.vocabulary_file"},
      "vocabulary_file lists all tokens, so that none is replaced by <unk>; remove it, or task.vocabulary and task.min_count");
  report.conflict_if(task.open != nullptr && c.task.file.empty(), {"task.file", "task.name"},
                     "task {} needs a data file; set task.file", c.task.name);
  report.conflict_if(
      task.causal && c.model.attention.mask != Mask::causal, {"model.attention.mask", "task.name"},
      "task {} requires the causal mask, or the model could read the answers in its input; set model.attention.mask to causal",
      c.task.name);
}

// Returns how the vocabulary differs from that of a trained model; "" when they are equal.
std::string vocabulary_mismatch(const std::vector<std::string>& trained,
                                const std::vector<std::string>& now) {
  if (now == trained) return "";
  const auto differ = std::ranges::mismatch(trained, now);
  const auto at = differ.in1 - trained.begin();
  const auto name = [&](const std::vector<std::string>& names) {
    return at < std::ssize(names) ? printable(names[static_cast<std::size_t>(at)]) : std::string("none");
  };
  return fmt::format(
      "the model was trained with another vocabulary: {} tokens, not {}; token {} is {}, not {}; restore the vocabulary, or train a new model",
      trained.size(), now.size(), at, name(trained), name(now));
}

// Keys that determine the vocabulary and the lengths of a task.
const std::vector<std::string> kTaskKeys = {
    "task.symbols", "task.length",          "task.pairs",     "task.depth", "task.offset",
    "task.file",    "task.validation_file", "task.test_file", "task.name",  "model.kind"};

// Reports a vocabulary file other than the one that the model was trained with.
void check_vocabulary_file(const OpenConfig& c, const DataRecord& trained, Report& report) {
  if (c.source == nullptr || c.task.vocabulary_file.empty()) return;
  const auto is_vocabulary = [](const DataFile& file) { return file.key == "vocabulary_file"; };
  const auto before = std::ranges::find_if(trained.files, is_vocabulary);
  const auto now = std::ranges::find_if(c.source->files(), is_vocabulary);
  if (before != trained.files.end() &&
      (now->path == before->path || now->path == before->moved || now->hash == before->hash))
    return;
  report.conflict({"task.vocabulary_file"},
                  "the model keeps the vocabulary that it was trained with; remove the file");
}

void check_trained(OpenConfig& c, const DataRecord& trained, Report& report) {
  const std::string mismatch =
      vocabulary_mismatch(trained.vocabulary, vocabulary_of(*source_of(c), layout_of(c.model)));
  if (!mismatch.empty()) return report.conflict(kTaskKeys, mismatch);
  check_vocabulary_file(c, trained, report);
  if (c.model.positions != Positions::learned) return;
  const ModelSizes sizes = model_sizes(c);
  const auto check = [&](std::int64_t needed, std::int64_t rows) {
    if (needed <= rows) return true;
    std::vector<std::string> keys = kTaskKeys;
    keys.insert(keys.begin(), "model.max_length");
    report.conflict(
        keys,
        fmt::format(
            "the task needs {0} positions, and the model has learned {1}; train a model with model.max_length={0}, or with other model.positions",
            needed, rows));
    return false;
  };
  if (!check(std::max(sizes.length, c.model.max_length), trained.length)) return;
  if (sizes.source_length > 0 &&
      !check(std::max(sizes.source_length, c.model.max_length), trained.source_length))
    return;
  if (c.model.max_length != trained.length) c.model.max_length = 0;
  c.model.trained_length = trained.length;
  c.model.trained_source_length = trained.source_length;
}

void check_lengths(OpenConfig& c, const DataRecord* trained, Report& report) {
  if (c.task.min_length > c.task.length)
    return report.conflict(
        {"task.min_length", "task.length"},
        fmt::format("min_length ({}) must be at most length ({})", c.task.min_length, c.task.length));
  if (c.source != nullptr) c.source->check(layout_of(c.model));  // throws a DataError with lines of the file
  std::int64_t needed = 0;
  try {
    const ModelSizes sizes = model_sizes(c);
    needed = std::max(sizes.length, sizes.source_length);
    if (trained != nullptr) check_trained(c, *trained, report);
  } catch (const DataError& e) {
    return report.conflict({"model.output.per", "task.name", "task.length"}, e.what());
  }
  report.conflict_if(
      c.model.max_length != 0 && needed > c.model.max_length,
      {"model.max_length", "task.length", "model.output.per", "task.name"},
      "max_length ({}) must be at least the longest sequence of the task ({}); raise it, or set it to 0",
      c.model.max_length, needed);
}

void check_head_log(const Config& c, Report& report) {
  if (!c.train.log_heads) return;
  const bool recurrent = c.model.kind == ModelKind::recurrent;
  const bool convolution = !recurrent && c.model.mixer == Mixer::convolution;
  if (recurrent ? c.model.attention.score == Score::none : convolution)
    report.conflict({"train.log_heads", recurrent ? "model.attention.score" : "model.mixer"},
                    "this model has no attention heads to log; remove log_heads");
  else if (!kind_of(c.model.attention.score).softmax)
    report.conflict(
        {"train.log_heads", "model.attention.score"},
        "scores of heads require attention weights that sum to 1, which score linear has not; remove log_heads, or choose another score");
}

void check_schedule(const TrainConfig& train, Report& report) {
  const ScheduleConfig& schedule = train.schedule;
  report.conflict_if(
      schedule.warmup > train.steps, {"train.schedule.warmup", "train.steps"},
      "warmup ({0}) must be at most steps ({1}); lower train.schedule.warmup, or raise train.steps",
      schedule.warmup, train.steps);
  const bool has_final = schedule.name == ScheduleKind::linear || schedule.name == ScheduleKind::cosine_decay;
  report.conflict_if(
      !has_final && schedule.final != 0, {"train.schedule.final", "train.schedule.name"},
      "final has no effect on this schedule; remove it, or set train.schedule.name to linear or cosine_decay");
  report.conflict_if(
      has_final && schedule.final > train.optimizer.lr, {"train.schedule.final", "train.optimizer.lr"},
      "final ({}) must be at most lr ({}); lower train.schedule.final, or raise train.optimizer.lr",
      schedule.final, train.optimizer.lr);
}

// `sequences`: how many training sequences there are; 0: no limit.
void check_batch(const Config& c, std::int64_t sequences, Report& report) {
  report.conflict_if(sequences != 0 && c.train.batch > sequences, {"train.batch", "data.train", "task.file"},
                     "batch ({}) must be at most the number of training sequences ({}); lower train.batch",
                     c.train.batch, sequences);
}

void check_training(const Config& c, Report& report) {
  const TrainConfig& train = c.train;
  report.conflict_if(train.shards > train.batch, {"train.shards", "train.batch"},
                     "shards ({}) must be at most batch ({}); lower train.shards", train.shards, train.batch);
  for (const auto& [key, is_set] : {std::pair("train.target.accuracy", train.target.accuracy > 0),
                                    {"train.target.loss", train.target.loss > 0},
                                    {"train.patience", train.patience > 0}})
    report.conflict_if(is_set && train.evaluate_every == 0, {key, "train.evaluate_every"},
                       "{} requires evaluations before the last step; set train.evaluate_every", key);
  report.conflict_if(train.sample_every > 0 && !find_task(c.task.name).predicts_next,
                     {"train.sample_every", "task.name"},
                     "only models of task text draw samples while they train; remove sample_every");
  check_schedule(train, report);
}

bool has_files(const Config& c) { return find_task(c.task.name).open != nullptr; }

// A tied output has a logit for each token.
Outputs outputs_of(const OpenConfig& c) { return c.model.output.tied ? Outputs::vocabulary : c.outputs; }

}  // namespace

ResolvedConfig parse_config(const std::string& yaml, const std::string& name,
                            const std::vector<std::string>& overrides, const Rules& rules) {
  OpenConfig out;
  const config::Section root = config::describe(out);
  Report report(name);
  config::read_yaml(yaml, root, report);
  int number = 0;
  for (const std::string& argument : overrides) config::read_override(argument, ++number, root, report);
  // A limit that is made for generated sequences would cut a file.
  if (has_files(out)) {
    for (const Split split : {Split::train, Split::validation, Split::test})
      if (!report.was_given(fmt::format("data.{}", split_name(split)))) out.data.size(split) = kAll;
  }
  // Other models than encoders generate one token after another.
  if (out.model.kind != ModelKind::encoder && !report.was_given("model.output.per"))
    out.model.output.per = OutputPer::next;
  config::check_model(out.model, report);
  check_task(out, report);
  if (!has_files(out)) check_lengths(out, rules.trained, report);
  if (rules.training) check_training(out, report);
  if (rules.training && !has_files(out)) check_batch(out, out.data.train, report);
  check_head_log(out, report);
  report.finish();
  ResolvedConfig resolved(out.values());
  resolved.origins = report.given();
  resolved.files = report.files();
  return resolved;
}

OpenConfig open_data(ResolvedConfig config, const Rules& rules, std::shared_ptr<const Source> shared) {
  if (!has_files(config)) return OpenConfig(std::move(config));
  const ProgressCounter work(kReadingData);
  if (config.files.empty()) config.files = {"config"};
  Report report(config.files, config.origins);
  follow_moved_files(config.task, config.files[0], [&](const std::string& key) {
    const auto at = config.origins.find("task." + key);
    return at != config.origins.end() && at->second.argument > 0;
  });
  OpenConfig out(std::move(config), std::move(shared));
  if (out.source == nullptr) out.source = file_source(out.task, layout_of(out.model), rules.trained);
  const bool has_vocabulary = rules.trained != nullptr
                                  ? rules.trained->outputs.empty()
                                  : rules.outputs > 0 && rules.outputs != std::ssize(out.source->answers());
  if (has_vocabulary) out.outputs = Outputs::vocabulary;
  const bool is_stream = out.source->starts() > 0;
  check_lengths(out, rules.trained, report);
  report.conflict_if(
      rules.training && is_stream && out.data.train != kAll, {"data.train", "task.documents"},
      "data.train has no effect on a stream, which training reads at random places; remove it, or choose a smaller part with task.split");
  if (rules.training && !is_stream)
    check_batch(out, std::min(out.source->rows(Split::train), out.data.train), report);
  report.finish();
  return out;
}

Layout layout_of(const ModelConfig& model) {
  constexpr Layout kLayouts[] = {Layout::position, Layout::sequence,
                                 Layout::next};  // in the order of OutputPer
  if (model.kind != ModelKind::encoder) return Layout::seq2seq;
  return kLayouts[static_cast<std::size_t>(model.output.per)];
}

std::shared_ptr<const Source> source_of(const OpenConfig& c) {
  return c.source != nullptr ? c.source : generated_source(c.task, c.data, c.train.seed);
}

ModelSizes model_sizes(const OpenConfig& c) {
  return model_sizes(*source_of(c), layout_of(c.model), outputs_of(c));
}
DataConfig split_sizes(const OpenConfig& c) { return split_sizes(*source_of(c), c.data); }

std::vector<std::string> token_names(const OpenConfig& c) {
  return token_names(*source_of(c), layout_of(c.model));
}

Dataset make_dataset(const OpenConfig& c) {
  return Dataset(source_of(c), c.data, layout_of(c.model), c.train.seed, outputs_of(c));
}

DataRecord record_of(const OpenConfig& c) {
  return record_of(*source_of(c), layout_of(c.model), c.model.max_length, outputs_of(c));
}

bool generates(const Config& config) {
  const Layout layout = layout_of(config.model);
  const bool predicts_next =
      layout == Layout::next || (layout == Layout::position && find_task(config.task.name).predicts_next);
  return layout == Layout::seq2seq || (predicts_next && config.model.mixer == Mixer::attention);
}

ResolvedConfig load_config(const std::string& path, const std::vector<std::string>& overrides,
                           const Rules& rules) {
  return parse_config(config::read_config_file(path), path, overrides, rules);
}

OpenConfig open_config(const std::string& path, const std::vector<std::string>& overrides,
                       const Rules& rules) {
  return open_data(load_config(path, overrides, rules), rules);
}

}  // namespace thimble
