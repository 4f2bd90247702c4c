#include "thimble/train/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "thimble/train/file.h"
#include "train/config/differences.h"
#include "train/files/hash.h"
#include "train/files/lock.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"
#include "train/runs/run_layout.h"
#include "train/runs/step_set.h"

namespace thimble {

namespace fs = std::filesystem;

// The small files of a run, as they were when they were first asked for.
struct RunDirectory::Texts {
  std::optional<std::string> config;
  std::optional<Json> data_json;
  std::optional<DataRecord> data;
  std::optional<bool> has_best_result;
  Json summary_steps;  // with it
};

namespace {

// Returns "version 0.3.0" of the program that wrote a summary, or "another version" if it does not say so.
std::string writer_of(const fs::path& summary) {
  const Json version = object_in(summary).value("version", Json());
  return version.is_string() ? "version " + version.get<std::string>() : "another version";
}

// Throws unless the checkpoint is what its name says.
void require_name(const Checkpoint& checkpoint) {
  const std::string& path = checkpoint.file->path();
  const RunState& state = checkpoint.state;
  const fs::path name = fs::path(path).filename();
  const auto check = [&](bool holds, const std::string& why) {
    require<CheckpointError>(holds, "{}: holds step {}{}; restore the file, or rename it to {}", path,
                             state.step, why, step_name(state.step));
  };
  const std::int64_t step = step_of(name);
  check(step == 0 || step == state.step, "");
  check(name != kBest || state.best_step == state.step, fmt::format(", but the best is {}", state.best_step));
  check(name != kFinal || ending(state, checkpoint.config.train),
        fmt::format(", at which training to step {} has not ended", checkpoint.config.train.steps));
}

bool is_readable(const Json& format) { return format == kRunFormat || format == kRunFormat3; }

Checkpoint open_checkpoint(const fs::path& path, const fs::path& run) {
  const auto input = guarded([&] { return std::make_shared<const InputFile>(path); });
  std::shared_ptr<const SafetensorsFile> file;
  try {
    file = std::make_shared<const SafetensorsFile>(input, path.string());
  } catch (const CheckpointError& e) {
    throw CheckpointError(fmt::format(
        "{}; others for --checkpoint: {}; to set it aside and train on: thimble train {} --resume", e.what(),
        checkpoint_names(run, path), shell_path(run)));
  }
  return checkpoint_of(file);
}

}  // namespace

std::string run_identity(const Config& config, const DataRecord& data) {
  std::string text =
      fixed_values(config) + json_text(Json(data.vocabulary), -1, Json::error_handler_t::replace);
  for (const DataFile& file : data.files) text += fmt::format("\n{} {}", file.key, file.hash);
  return hash_digits(text);
}

Checkpoint checkpoint_of(std::shared_ptr<const SafetensorsFile> file) {
  Checkpoint checkpoint{.file = std::move(file), .config = {}, .state = {}};
  const std::string& path = checkpoint.file->path();
  const auto& metadata = checkpoint.file->metadata();
  const auto has = [&](const char* key) { return metadata.contains(key); };
  require<CheckpointError>(
      has("config"),
      "{}: no config in the metadata, so it is no checkpoint of a run; open it: thimble eval --weights {} --config FILE",
      path, shell_path(path));
  require<CheckpointError>(
      has("format") && is_readable(metadata.at("format")) && has("state") && has("data") &&
          has("weights_hash"),
      "{}: not a checkpoint of format {}; open it with the version that wrote it, or thimble eval --weights {}",
      path, kRunFormat, shell_path(path));
  try {
    checkpoint.state = run_state(parse_json(metadata.at("state")));
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: invalid state: {}", path, e.what()));
  }
  checkpoint.config = parse_config(metadata.at("config"), path, {}, {.training = false});
  return checkpoint;
}

RunDirectory::Texts& RunDirectory::texts() const {
  if (!texts_) texts_ = std::make_shared<Texts>();
  return *texts_;
}

bool RunDirectory::is_run() const {
  try {
    require_run();
    return true;
  } catch (const CheckpointError&) {
    return false;
  }
}

void RunDirectory::require_run() const {
  std::optional<Json>& json = texts().data_json;
  if (json) return;
  guarded([&] {
    require<CheckpointError>(fs::is_directory(path_),
                             "{}: no such run directory; create one with thimble train", name());
    const fs::path file = path_ / kDataRecord;
    const std::vector<fs::path> checkpoints = checkpoint_files(path_);
    const std::string remedy =
        fmt::format("restore the file, or open the weights alone: thimble eval --weights {}",
                    checkpoints.empty() ? "FILE" : shell_path(checkpoints.front()));
    if (!fs::exists(file)) {
      require<CheckpointError>(!checkpoints.empty(), "{}: not a run: it has no {}", name(), kDataRecord);
      throw CheckpointError(fmt::format("{}: missing; {}", file.string(), remedy));
    }
    Json found;
    try {
      found = read_json(file);
    } catch (const FileError& e) {
      throw CheckpointError(fmt::format("{}; {}", e.what(), remedy));
    }
    const Json format = found.is_object() ? found.value("format", Json()) : Json();
    require<CheckpointError>(
        !format.is_null() || checkpoints.empty(),
        "{}: written by a version of thimble before 0.3, whose runs this one does not open; train it again",
        name());
    if (format.is_string() && format.get<std::string>().starts_with("thimble ") && !is_readable(format))
      throw CheckpointError(fmt::format(
          "{}: a run of format {}, written by {}; this version opens those of {} and {}: use the other one",
          name(), format.get<std::string>(), writer_of(path_ / kRunSummary), kRunFormat3, kRunFormat));
    require<CheckpointError>(is_readable(format), "{}: not a run: {} does not say \"format\": \"{}\"", name(),
                             kDataRecord, kRunFormat);
    json = std::move(found);
  });
}

bool RunDirectory::has_name(const fs::path& file) {
  const std::string name = file.filename().string(), folder = file.parent_path().string();
  if (name.ends_with(".tmp")) return folder.empty() || folder == kRunCheckpoints;
  if (folder == kRunCheckpoints) return name.find(".safetensors") != name.npos;
  const std::string names[] = {kDataRecord, kRunConfig, kRunCheckpoints, DirectoryLock::kFile};
  return folder.empty() && (std::ranges::find(names, name) != std::end(names) ||
                            name.starts_with(kRunMetrics.string()) || name.starts_with(kRunSummary.string()));
}

fs::path RunDirectory::config_path() const { return path_ / kRunConfig; }

bool RunDirectory::has_config() const {
  try {
    config_text();
  } catch (const CheckpointError&) {
    return fs::exists(config_path());
  }
  return true;
}

const std::string& RunDirectory::config_text() const {
  std::optional<std::string>& text = texts().config;
  if (text) return *text;
  return guarded([&]() -> const std::string& {
    if (fs::exists(config_path())) return text.emplace(read_file(config_path()));
    for (const fs::path& path : checkpoint_files(path_)) {
      try {
        return text.emplace(to_yaml(open_checkpoint(path, path_).config));
      } catch (const CheckpointError&) {
        continue;  // resuming sets it aside
      }
    }
    throw CheckpointError(fmt::format("{}: missing; begin again: thimble train CONFIG --out {} --resume",
                                      config_path().string(), shell_path(name())));
  });
}

Config RunDirectory::config() const {
  return parse_config(config_text(), config_path().string(), {}, {.training = false});
}

const DataRecord& RunDirectory::data() const {
  std::optional<DataRecord>& data = texts().data;
  if (data) return *data;
  require_run();
  try {
    return data.emplace(parse_record(*texts().data_json, path_));
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}; restore the file", (path_ / kDataRecord).string(), e.what()));
  }
}

fs::path RunDirectory::checkpoint_path(const std::string& name) const {
  if (name.empty()) {
    const std::vector<fs::path> files = checkpoint_files(path_);
    require<CheckpointError>(!files.empty(),
                             "{}: the run has no checkpoint yet; train it: thimble train {} --resume",
                             path_.string(), shell_path(path_));
    return has_best_result() && files.back().filename() == kBest ? files.back() : files.front();
  }
  const bool is_word = name == "best" || name == "final";
  fs::path path = path_ / kRunCheckpoints / fmt::format("{}{}.safetensors", is_word ? "" : "step-", name);
  if (fs::exists(path)) return path;
  if (fs::is_regular_file(name)) return name;
  throw CheckpointError(fmt::format("{}: no such checkpoint; the run has {}",
                                    name.find_first_of("/.") == name.npos ? path.string() : name,
                                    checkpoint_names(path_)));
}

Checkpoint RunDirectory::checkpoint(const std::string& name, std::vector<std::string>& remarks) const {
  require_run();
  return guarded([&] {
    for (bool again = false;; again = true) {
      const bool is_there = has_summary();  // asked first, as training writes it last
      const fs::path path = checkpoint_path(name);
      try {
        Checkpoint checkpoint = open_checkpoint(path, path_);
        std::vector<std::string> changed = require_own(checkpoint, true);
        const std::string wanted = has_best_result() ? kBest : kFinal;
        // The best may be from before the run went on with other values, and is its result all the same.
        if (wanted != kBest || path.filename() != kBest)
          std::ranges::move(changed, std::back_inserter(remarks));
        const Json& steps = texts().summary_steps;
        const bool is_older = steps.is_number() && steps < checkpoint.state.step;
        const bool has_ended = is_there && !is_older;
        if (name.empty() && path.filename() != wanted)
          remarks.push_back(has_ended ? fmt::format("{}: missing, though training has ended; this is step {}",
                                                    (path_ / kRunCheckpoints / wanted).string(),
                                                    checkpoint.state.step)
                                      : fmt::format("{}: training has not ended; this is step {}",
                                                    path_.string(), checkpoint.state.step));
        else if (name.empty() && !has_ended)
          remarks.push_back(fmt::format(
              "{}: {}, so this is the last step; resuming writes it", (path_ / kRunSummary).string(),
              is_older ? fmt::format("is of step {}", json_text(steps)) : "missing"));
        if (const fs::path newest = checkpoint_files(path_).front();
            path.filename() == kBest && path != newest)
          if (std::string why = other_best(path, checkpoint.state, header_state(newest)); !why.empty())
            remarks.push_back(std::move(why));
        if (!fs::exists(config_path()))
          remarks.push_back(fmt::format("{}: missing; the config is that of {}", config_path().string(),
                                        path.filename().string()));
        return checkpoint;
      } catch (const CheckpointError&) {
        if (again || fs::exists(path)) throw;  // else training has pruned or renamed it meanwhile
      }
    }
  });
}

std::vector<std::string> RunDirectory::require_own(const Checkpoint& checkpoint, bool any_rate) const {
  std::string lines;
  std::vector<std::string> others;
  for (const Difference& d : differences(checkpoint.config, config(), "the checkpoint", "config.yaml")) {
    if (!d.may_change && !(any_rate && d.key == kRateKey))
      lines += "\n  " + d.text;
    else if (d.key.starts_with("train.") && d.key != "train.threads")
      others.push_back(d.text);
  }
  const std::string& path = checkpoint.file->path();
  try {
    const DataRecord trained = parse_record(checkpoint.file->metadata().at("data"));
    for (const std::string& line : differing_records(trained, data(), "the checkpoint", kDataRecord))
      lines += "\n  " + line;
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}", path, e.what()));
  }
  require<ConfigError>(lines.empty(),
                       "{}: is not what {} was trained with:{}\nrestore these values, or start a new run",
                       name(), path, lines);
  require_name(checkpoint);
  return others;
}

std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>> RunDirectory::series(
    const std::shared_ptr<const SafetensorsFile>& open, std::vector<std::string>& remarks) const {
  std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>> found;
  for (const fs::path& path : checkpoint_files(path_)) {
    const std::int64_t step = step_of(path);
    if (step == 0 && path.filename() == kBest) continue;
    try {
      std::vector<std::string> ignored;
      const bool is_open = open != nullptr && path.string() == open->path();
      const auto file = is_open ? open : checkpoint(step > 0 ? std::to_string(step) : "final", ignored).file;
      found[run_state(parse_json(file->metadata().at("state"))).step] = file;
    } catch (const Error& e) {
      remarks.push_back(fmt::format("left out of the checkpoints over time: {}", e.what()));
    }
  }
  return found;
}

bool RunDirectory::has_summary() const { return fs::exists(path_ / kRunSummary); }

bool RunDirectory::has_best_result() const {
  std::optional<bool>& known = texts().has_best_result;
  if (!known) {
    const Json summary = object_in(path_ / kRunSummary);
    const std::vector<fs::path> files = checkpoint_files(path_);
    texts().summary_steps = summary.value("steps", Json());
    known = summary.value("result", Json()) == "best" && !files.empty();
    if (!*known) return false;
    const RunState newest = header_state(files.front());
    known = summary.value("run", Json()) == newest.run && texts().summary_steps >= newest.step;
  }
  return *known;
}

Json RunDirectory::summary(const std::string& run, const std::string& weights_hash,
                           std::vector<std::string>& remarks) const {
  if (!has_summary()) return nullptr;
  std::string why;
  const std::string file = (path_ / kRunSummary).string();
  try {
    Json summary = read_json(file);
    const auto is = [&](const char* key, const std::string& value) {
      return summary.value(key, Json()) == value;
    };
    if (!summary.is_object())
      why = file + ": is no object";
    else if (!is("run", run) || (!weights_hash.empty() && !is("weights_hash", weights_hash)))
      why = file + ": is of another run, or of other weights";
    else
      return summary;
  } catch (const FileError& e) {
    why = e.what();
  }
  remarks.push_back(fmt::format("{}; its numbers are left out; measure them with thimble eval {}", why,
                                shell_path(name())));
  return nullptr;
}

void RunDirectory::read_metrics(const RunState& state, const std::function<void(const Json& line)>& f,
                                std::vector<std::string>& remarks) const {
  guarded([&] {
    const fs::path file = path_ / kRunMetrics;
    const std::string left_out = "what was measured during training is left out";
    const auto remark = [&](const std::string& text) {
      remarks.push_back(fmt::format("{}: {}", file.string(), text));
    };
    if (!fs::exists(fs::symlink_status(file))) {
      if (state.step > 0) remark("missing; " + left_out);
      return;
    }
    std::map<std::string, StepSet> seen;
    std::int64_t first_step = 0, repeated = 0;
    std::size_t invalid = 0;  // number of the first line that is none
    bool is_own = true, is_first = true;
    try {
      read_lines(file, [&](const MetricsLine& line) {
        const std::string run = std::exchange(is_first, false) ? line.run() : "";
        if (!run.empty() && !state.run.empty() && run != state.run) return is_own = false;
        if (line.values.is_null()) {
          if (invalid == 0) invalid = line.number;
          return true;
        }
        const auto step = line.values.at("step").get<std::int64_t>();
        if (seen.empty()) first_step = step;
        std::string what = line.values.at("split").get<std::string>();
        for (const char* value : {"key", "to"})
          if (line.values.contains(value)) what += "\n" + json_text(line.values.at(value));
        if (seen[what].insert(step))
          f(line.values);
        else
          ++repeated;
        return true;
      });
    } catch (const FileError& e) {
      // A file that could be read is not what is wrong: the disk is, or memory.
      if (::access(file.c_str(), R_OK) == 0 && fs::is_regular_file(file)) throw;
      return remarks.push_back(fmt::format("{}; {}", e.what(), left_out));
    }
    if (!is_own) return remark("is of another run; " + left_out);
    if (invalid > 0)
      remark(fmt::format("line {} is no object of step and split, so it is left out", invalid));
    if (repeated > 0)
      remark(fmt::format("{} of the same step and split as one before; the first is shown",
                         counted(repeated, "line")));
    if (state.step > 0 && first_step > 1) remark(fmt::format("begins at step {}", first_step));
  });
}

}  // namespace thimble
