#include "thimble/config/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "config/fields.h"
#include "config/reader.h"
#include "thimble/config/report.h"
#include "thimble/config/yaml.h"
#include "thimble/core/text.h"
#include "thimble/data/table.h"

namespace thimble {
namespace {

using config::Report;

// A key whose value is not its default.
struct Unread {
  std::string key;
  bool is_set;
};

// Keys that say nothing of a model because of another key must have their defaults. One problem names all of
// them, as the one place may be that of the other key.
void check_unread(const std::vector<Unread>& keys, const std::string& because_of, std::string_view model,
                  std::string_view other, Report& report) {
  std::vector<std::string> set;
  for (const auto& [key, is_set] : keys)
    if (is_set) set.push_back(key);
  if (set.empty()) return;
  const std::string rule = fmt::format("{} does not read {}; keep to the defaults, or set {} to {}", model,
                                       fmt::join(set, ", "), because_of, other);
  set.push_back(because_of);
  report.conflict(set, rule);
}

// Those of models with several heads.
std::vector<Unread> keys_of_heads(const ModelConfig& model) {
  const AttentionConfig& a = model.attention;
  return {{"model.heads", model.heads != ModelConfig().heads},
          {"model.attention.combine", a.combine != AttentionConfig().combine},
          {"model.attention.tie_query_key", a.tie_query_key},
          {"model.attention.kv_heads", a.kv_heads != 0},
          {"model.attention.d_key", a.d_key != 0},
          {"model.attention.d_value", a.d_value != 0}};
}

void check_heads(const ModelConfig& model, Report& report) {
  const AttentionConfig& attention = model.attention;
  if (attention.score == Score::none)
    report.conflict({"model.attention.score", "model.kind"},
                    "only a recurrent model does without attention; choose another score, or set model.kind "
                    "to recurrent");
  if (model.d_model % model.heads != 0 && (attention.d_key == 0 || attention.d_value == 0))
    report.conflict({"model.heads", "model.d_model"},
                    fmt::format("{} heads do not divide a d_model of {}; change one, or set "
                                "model.attention.d_key and d_value",
                                model.heads, model.d_model));
  const AttentionSizes sizes = model.attention_sizes();
  if (model.heads % sizes.kv_heads != 0)
    report.conflict({"model.attention.kv_heads", "model.heads"},
                    fmt::format("{} heads cannot share {} keys and values evenly; let kv_heads divide heads",
                                model.heads, sizes.kv_heads));
  if (attention.tie_query_key && sizes.kv_heads != model.heads)
    report.conflict({"model.attention.tie_query_key", "model.attention.kv_heads"},
                    fmt::format("tied queries and keys need a key for each of {} heads; leave kv_heads at 0",
                                model.heads));
  if (model.positions == Positions::rotary &&
      (!kind_of(attention.score).product || kind_of(attention.score).matrices()))
    report.conflict(
        {"model.positions", "model.attention.score"},
        "rotary positions become distances in plain products alone; choose the score scaled_dot or "
        "dot, or other positions");
  if (model.positions == Positions::rotary && sizes.d_key % 2 != 0)
    report.conflict(
        {"model.positions", "model.attention.d_key", "model.d_model", "model.heads"},
        fmt::format("rotary positions turn pairs of a head's {} columns; set model.attention.d_key "
                    "to an even number",
                    sizes.d_key));
}

void check_convolution(const ModelConfig& model, Report& report) {
  const AttentionConfig& a = model.attention;
  std::vector<Unread> unread = keys_of_heads(model);
  unread.push_back({"model.attention.dropout", a.dropout > 0});
  unread.push_back({"model.attention.score", a.score != AttentionConfig().score});
  check_unread(unread, "model.mixer", "a convolution", "attention", report);
  if (model.positions == Positions::rotary || model.positions == Positions::alibi)
    report.conflict({"model.positions", "model.mixer"},
                    "these positions act in attention; choose sinusoidal, learned or none for a convolution");
  if (a.mask == Mask::none && model.window % 2 == 0)
    report.conflict({"model.window", "model.attention.mask"},
                    fmt::format("a window of {} positions has no middle; make it odd, or set "
                                "model.attention.mask to causal",
                                model.window));
}

void check_next(const ModelConfig& model, Report& report) {
  if (model.output.per != OutputPer::next)
    report.conflict({"model.output.per", "model.kind"},
                    "a decoder answers with one token after another; set model.output.per to next");
}

void check_recurrent(const ModelConfig& model, Report& report) {
  const ModelConfig defaults;
  std::vector<Unread> unread = keys_of_heads(model);
  const Unread others[] = {{"model.attention.mask", model.attention.mask != defaults.attention.mask},
                           {"model.layers", model.layers != defaults.layers},
                           {"model.d_ff", model.d_ff != defaults.d_ff},
                           {"model.norm", model.norm != defaults.norm},
                           {"model.norm_type", model.norm_type != defaults.norm_type},
                           {"model.activation", model.activation != defaults.activation},
                           {"model.gated", model.gated},
                           {"model.positions", model.positions != defaults.positions},
                           {"model.mixer", model.mixer != defaults.mixer},
                           {"model.window", model.window != defaults.window},
                           {"model.output.hidden", model.output.hidden != 0}};
  unread.insert(unread.end(), std::begin(others), std::end(others));
  check_unread(unread, "model.kind", "a recurrent model", "encoder_decoder", report);
  check_next(model, report);
  if (model.attention.score == Score::none && model.attention.dropout > 0)
    report.conflict({"model.attention.dropout", "model.attention.score"},
                    "there are no attention weights to drop; choose a score, or leave the dropout at 0");
  if (model.d_model % 2 != 0)
    report.conflict({"model.d_model", "model.kind"},
                    fmt::format("a recurrent model reads the source in both directions, with half of its {} "
                                "columns each; make d_model even",
                                model.d_model));
}

void check_model(const ModelConfig& model, Report& report) {
  if (model.kind == ModelKind::recurrent) return check_recurrent(model, report);
  if (model.mixer == Mixer::attention) check_heads(model, report);
  if (model.mixer == Mixer::convolution) check_convolution(model, report);
  if (model.mixer == Mixer::attention && model.window != ModelConfig().window)
    report.conflict(
        {"model.window", "model.mixer"},
        "only a convolution has a window; set model.mixer to convolution, or leave the window out");
  if (model.gated && model.d_ff == 0)
    report.conflict({"model.gated", "model.d_ff"},
                    "there is no feed-forward net to gate; set model.d_ff, or leave gated out");
  if (model.positions == Positions::sinusoidal && model.d_model % 2 != 0)
    report.conflict({"model.d_model", "model.positions"},
                    fmt::format("sinusoidal positions need an even d_model, not {}", model.d_model));
  if (model.kind == ModelKind::encoder) {
    if (model.output.per == OutputPer::next && model.attention.mask != Mask::causal)
      report.conflict({"model.attention.mask", "model.output.per"},
                      "an output per next token needs the causal mask, or it could read the answer");
    return;
  }
  check_next(model, report);
  if (model.mixer == Mixer::convolution)
    report.conflict(
        {"model.mixer", "model.kind"},
        "an encoder-decoder needs attention; set model.mixer to attention, or model.kind to encoder");
  if (model.attention.mask != Mask::none)
    report.conflict({"model.attention.mask", "model.kind"},
                    "the mask is the encoder's, which may read all of its input (the decoder's is causal in "
                    "any case); set it to none");
}

void check_task(Config& c, Report& report) {
  const Task& task = find_task(c.task.name);
  const config::Section root = config::describe(c);
  for (const config::Field& field : root.find("task")->section()->fields) {
    const std::string key = fmt::format("task.{}", field.key);
    if (!field.applies && report.was_given(key))
      report.conflict(
          {key, "task.name"},
          fmt::format("task {} has no such key; it has {}", c.task.name,
                      task.keys.empty() ? "none" : fmt::format("{}", fmt::join(task.keys, ", "))));
  }
  if (task.table != nullptr && c.task.file.empty())
    report.conflict({"task.file", "task.name"},
                    fmt::format("task {} needs a data file; set task.file", c.task.name));
  if (task.causal && c.model.attention.mask != Mask::causal)
    report.conflict(
        {"model.attention.mask", "task.name"},
        fmt::format("task {} needs the causal mask, or the model could read the answers further on",
                    c.task.name));
}

// What of the task does not fit a trained model; "" when all of it does.
std::string vocabulary_misfit(const std::vector<std::string>& trained, const std::vector<std::string>& now) {
  if (now == trained) return "";
  const auto differ = std::ranges::mismatch(trained, now);
  const auto at = differ.in1 - trained.begin();
  const auto name = [&](const std::vector<std::string>& names) {
    return at < std::ssize(names) ? printable(names[static_cast<std::size_t>(at)]) : std::string("none");
  };
  return fmt::format(
      "the model was trained with {} tokens, this task has {}: token {} was {}, and is {} here; leave what "
      "makes the vocabulary as it was, or train a model with this task",
      trained.size(), now.size(), at, name(trained), name(now));
}

// The keys that say which tokens and lengths a task has.
const std::vector<std::string> kTaskKeys = {
    "task.symbols", "task.length",          "task.pairs",     "task.depth", "task.offset",
    "task.file",    "task.validation_file", "task.test_file", "task.name",  "model.kind"};

// A trained model has its tokens; a file with others cannot give it new ones.
void check_vocabulary_file(const TaskConfig& task, const DataRecord& trained, Report& report) {
  if (task.table == nullptr || task.vocabulary_file.empty()) return;
  const auto is_vocabulary = [](const DataFile& file) { return file.key == "vocabulary_file"; };
  const auto before = std::ranges::find_if(trained.files, is_vocabulary);
  const auto now = std::ranges::find_if(task.table->sources(), is_vocabulary);
  if (before != trained.files.end() &&
      (now->path == before->path || now->path == before->moved || now->hash == before->hash))
    return;
  report.conflict({"task.vocabulary_file"},
                  "the model keeps the tokens that it was trained with; leave the file out");
}

void check_trained(Config& c, const DataRecord& trained, const std::vector<std::string>& names,
                   Report& report) {
  const std::string misfit = vocabulary_misfit(trained.vocabulary, names);
  if (!misfit.empty()) return report.conflict(kTaskKeys, misfit);
  check_vocabulary_file(c.task, trained, report);
  if (c.model.positions != Positions::learned) return;
  const Layout layout = layout_of(c.model);
  const std::int64_t length = model_length(c.task, layout), source = thimble::source_length(c.task, layout);
  const auto check = [&](std::int64_t needed, std::int64_t rows) {
    if (needed <= rows) return true;
    std::vector<std::string> keys = kTaskKeys;
    keys.insert(keys.begin(), "model.max_length");
    report.conflict(keys, fmt::format("the task needs sequences of {} tokens, the model has learned {} "
                                      "positions; train one with model.max_length={}, or with other "
                                      "model.positions",
                                      needed, rows, needed));
    return false;
  };
  if (!check(std::max(length, c.model.max_length), trained.length)) return;
  if (source > 0 && !check(std::max(source, c.model.max_length), trained.source_length)) return;
  if (c.model.max_length != trained.length) c.model.max_length = 0;
  c.model.trained_length = trained.length;
  c.model.trained_source_length = trained.source_length;
}

void check_lengths(Config& c, const DataRecord* trained, Report& report) {
  if (c.task.min_length > c.task.length)
    return report.conflict(
        {"task.min_length", "task.length"},
        fmt::format("a min_length of {} is more than the length, {}", c.task.min_length, c.task.length));
  if (c.task.table != nullptr) c.task.table->check(layout_of(c.model));  // told with the lines of the file
  std::int64_t needed = 0;
  try {
    needed = std::max(model_length(c.task, layout_of(c.model)), source_length(c.task, layout_of(c.model)));
    const std::vector<std::string> names = token_names(c.task, layout_of(c.model));
    if (trained != nullptr && trained->known()) check_trained(c, *trained, names, report);
  } catch (const DataError& e) {
    return report.conflict({"model.output.per", "task.name", "task.length"}, e.what());
  }
  if (c.model.max_length != 0 && needed > c.model.max_length)
    report.conflict(
        {"model.max_length", "task.length", "model.output.per", "task.name"},
        fmt::format("the task needs sequences of {} tokens, the model takes {}; raise model.max_length, "
                    "or leave it at 0",
                    needed, c.model.max_length));
}

void check_watch(const Config& c, Report& report) {
  const bool recurrent = c.model.kind == ModelKind::recurrent;
  const bool headless =
      recurrent ? c.model.attention.score == Score::none : c.model.mixer == Mixer::convolution;
  if (c.train.watch_heads && headless)
    report.conflict({"train.watch_heads", recurrent ? "model.attention.score" : "model.mixer"},
                    "this model has no heads to watch; leave watch_heads out");
}

void check_training(const Config& c, Report& report) {
  const TrainConfig& train = c.train;
  const std::int64_t rows = c.task.table ? c.task.table->splits()[0] : c.data.train;
  const std::int64_t sequences = std::min(rows, c.data.train);
  if (c.data.train != 0 && train.batch > sequences)
    report.conflict(
        {"train.batch", "data.train", "task.file"},
        fmt::format("a batch of {} is more than all {} training sequences", train.batch, sequences));
  if (train.shards > train.batch)
    report.conflict(
        {"train.shards", "train.batch"},
        fmt::format("{} shards of a batch of {} would leave some empty", train.shards, train.batch));
  if (train.evaluate_every == 0) {
    const auto useless = [&](const std::string& key, bool is_set) {
      if (is_set)
        report.conflict({key, "train.evaluate_every"},
                        "nothing is evaluated before the last step; set train.evaluate_every");
    };
    useless("train.target.accuracy", train.target.accuracy > 0);
    useless("train.target.loss", train.target.loss > 0);
    useless("train.patience", train.patience > 0);
  }
  if (train.schedule.warmup > train.steps)
    report.conflict(
        {"train.schedule.warmup", "train.steps"},
        fmt::format("a warmup of {0} is longer than all {1} steps; set train.schedule.warmup={1} or less, or "
                    "train.steps={0} or more",
                    train.schedule.warmup, train.steps));
}

// The data files, read with the tokens of the trained model if there is one.
void read_table(Config& c, const DataRecord* trained) {
  if (trained == nullptr || !trained->known()) {
    c.task.table = std::make_shared<Table>(load_table(c.task));
    return;
  }
  DataRecord of_task = *trained;
  if (layout_of(c.model) == Layout::pairs && of_task.vocabulary.size() > 2)
    of_task.vocabulary.resize(of_task.vocabulary.size() - 2);  // without the marks of answers
  for (std::string* path :
       {&c.task.file, &c.task.validation_file, &c.task.test_file, &c.task.vocabulary_file})
    for (const DataFile& file : trained->files)
      if (!file.moved.empty() && *path == file.path) *path = file.moved;
  c.task.table = std::make_shared<Table>(load_table(c.task, &of_task));
}

ResolvedConfig resolve(const std::string& yaml, const std::string& name,
                       const std::vector<std::string>& overrides, const DataRecord* trained = nullptr) {
  ResolvedConfig resolved;
  Config& out = resolved.config;
  const config::Section root = config::describe(out);
  Report report(name);
  config::read_yaml(yaml, root, report);
  int number = 0;
  for (const std::string& argument : overrides) config::read_override(argument, ++number, root, report);
  // Models that write have only this output.
  if (out.model.kind != ModelKind::encoder && !report.was_given("model.output.per"))
    out.model.output.per = OutputPer::next;
  check_model(out.model, report);
  check_task(out, report);
  if (find_task(out.task.name).table != nullptr) {
    report.finish();  // a config that is wrong already is not worth reading the files
    read_table(out, trained);
  }
  check_lengths(out, trained, report);
  if (trained == nullptr) check_training(out, report);
  check_watch(out, report);
  report.finish();
  resolved.origins = report.given();
  return resolved;
}

}  // namespace

Layout layout_of(const ModelConfig& model) {
  if (model.kind != ModelKind::encoder) return Layout::pairs;
  switch (model.output.per) {
    case OutputPer::position:
      return Layout::position;
    case OutputPer::sequence:
      return Layout::sequence;
    case OutputPer::next:
      break;
  }
  return Layout::next;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides,
                   const DataRecord* trained) {
  return resolve(config::read_config_file(path), path, overrides, trained).config;
}

ResolvedConfig resolve_config(const std::string& path, const std::vector<std::string>& overrides) {
  return resolve(config::read_config_file(path), path, overrides);
}

Config parse_config(const std::string& yaml, const std::string& name,
                    const std::vector<std::string>& overrides, const DataRecord* trained) {
  return resolve(yaml, name, overrides, trained).config;
}

}  // namespace thimble
