#include "thimble/train/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "thimble/engine/error.h"
#include "train/config/fields.h"
#include "train/config/model_rules.h"
#include "train/config/reader.h"
#include "train/config/report.h"
#include "train/config/yaml.h"
#include "train/data/rows.h"
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
void check_vocabulary_file(const TaskConfig& task, const DataRecord& trained, Report& report) {
  if (task.rows == nullptr || task.vocabulary_file.empty()) return;
  const auto is_vocabulary = [](const DataFile& file) { return file.key == "vocabulary_file"; };
  const auto before = std::ranges::find_if(trained.files, is_vocabulary);
  const auto now = std::ranges::find_if(task.rows->sources(), is_vocabulary);
  if (before != trained.files.end() &&
      (now->path == before->path || now->path == before->moved || now->hash == before->hash))
    return;
  report.conflict({"task.vocabulary_file"},
                  "the model keeps the vocabulary that it was trained with; remove the file");
}

void check_trained(Config& c, const DataRecord& trained, Report& report) {
  const std::string mismatch =
      vocabulary_mismatch(trained.vocabulary, vocabulary_of(c.task, layout_of(c.model)));
  if (!mismatch.empty()) return report.conflict(kTaskKeys, mismatch);
  check_vocabulary_file(c.task, trained, report);
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

void check_lengths(Config& c, const DataRecord* trained, Report& report) {
  if (c.task.min_length > c.task.length)
    return report.conflict(
        {"task.min_length", "task.length"},
        fmt::format("min_length ({}) must be at most length ({})", c.task.min_length, c.task.length));
  if (c.task.rows != nullptr)
    c.task.rows->check(layout_of(c.model));  // throws a DataError with lines of the file
  std::int64_t needed = 0;
  try {
    const ModelSizes sizes = model_sizes(c);
    needed = std::max(sizes.length, sizes.source_length);
    if (trained != nullptr && trained->known()) check_trained(c, *trained, report);
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

// `rows`: how many training sequences there are, where data files say so.
void check_training(const Config& c, std::int64_t rows, Report& report) {
  const TrainConfig& train = c.train;
  const std::int64_t sequences = std::min(rows, c.data.train);
  if (c.task.rows != nullptr && c.task.rows->places() > 0 && c.data.train != kAll)
    report.conflict(
        {"data.train", "task.documents"},
        "data.train has no effect on a stream, which training reads at random places; remove it, or choose a smaller part with task.split");
  else if (c.data.train != 0 && train.batch > sequences)
    report.conflict(
        {"train.batch", "data.train", "task.file"},
        fmt::format("batch ({}) must be at most the number of training sequences ({}); lower train.batch",
                    train.batch, sequences));
  report.conflict_if(train.shards > train.batch, {"train.shards", "train.batch"},
                     "shards ({}) must be at most batch ({}); lower train.shards", train.shards, train.batch);
  for (const auto& [key, is_set] : {std::pair("train.target.accuracy", train.target.accuracy > 0),
                                    {"train.target.loss", train.target.loss > 0},
                                    {"train.patience", train.patience > 0}})
    report.conflict_if(is_set && train.evaluate_every == 0, {key, "train.evaluate_every"},
                       "{} requires evaluations before the last step; set train.evaluate_every", key);
  report.conflict_if(train.sample_every > 0 && !find_task(c.task.name).continues,
                     {"train.sample_every", "task.name"},
                     "only models of task text draw samples while they train; remove sample_every");
  check_schedule(train, report);
}

ResolvedConfig resolve(const std::string& yaml, const std::string& name,
                       const std::vector<std::string>& overrides, bool opens_data,
                       const DataRecord* trained = nullptr) {
  ResolvedConfig resolved;
  Config& out = resolved.config;
  const config::Section root = config::describe(out);
  Report report(name);
  config::read_yaml(yaml, root, report);
  int number = 0;
  for (const std::string& argument : overrides) config::read_override(argument, ++number, root, report);
  // A limit that is made for generated sequences would cut a file.
  if (find_task(out.task.name).open != nullptr) {
    for (const Split split : {Split::train, Split::validation, Split::test})
      if (!report.was_given(fmt::format("data.{}", split_name(split)))) out.data.size(split) = kAll;
  }
  // Other models than encoders generate one token after another.
  if (out.model.kind != ModelKind::encoder && !report.was_given("model.output.per"))
    out.model.output.per = OutputPer::next;
  config::check_model(out.model, report);
  check_task(out, report);
  const bool has_files = find_task(out.task.name).open != nullptr;
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  if (has_files && opens_data) {
    report.finish();  // data files can be long: a config with problems is reported without reading them
    follow_moved_files(out.task, name);
    out.task.rows = open_rows(out.task, layout_of(out.model), trained);
    if (out.task.rows->places() == 0) rows = out.task.rows->splits()[0];
  }
  if (!has_files || opens_data) check_lengths(out, trained, report);
  if (trained == nullptr) check_training(out, rows, report);
  check_head_log(out, report);
  report.finish();
  resolved.origins = report.given();
  return resolved;
}

}  // namespace

Layout layout_of(const ModelConfig& model) {
  constexpr Layout kLayouts[] = {Layout::position, Layout::sequence,
                                 Layout::next};  // in the order of OutputPer
  if (model.kind != ModelKind::encoder) return Layout::seq2seq;
  return kLayouts[static_cast<std::size_t>(model.output.per)];
}

ModelSizes model_sizes(const Config& config) { return model_sizes(config.task, layout_of(config.model)); }

bool generates(const Config& config) {
  const Layout layout = layout_of(config.model);
  const bool predicts_next =
      layout == Layout::next || (layout == Layout::position && find_task(config.task.name).continues);
  return layout == Layout::seq2seq || (predicts_next && config.model.mixer == Mixer::attention);
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_config(config::read_config_file(path), path, overrides);
}

Config parse_config(const std::string& yaml, const std::string& name,
                    const std::vector<std::string>& overrides, const DataRecord* trained) {
  return resolve(yaml, name, overrides, false, trained).config;
}

Config open_config(const std::string& path, const std::vector<std::string>& overrides,
                   const DataRecord* trained) {
  return open_config_text(config::read_config_file(path), path, overrides, trained);
}

Config open_config_text(const std::string& yaml, const std::string& name,
                        const std::vector<std::string>& overrides, const DataRecord* trained) {
  return resolve(yaml, name, overrides, true, trained).config;
}

ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides) {
  return resolve(config::read_config_file(path), path, overrides, true);
}

}  // namespace thimble
