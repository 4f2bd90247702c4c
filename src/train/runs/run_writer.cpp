#include "train/runs/run_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "thimble/train/run.h"
#include "train/config/differences.h"
#include "train/files/path.h"
#include "train/runs/run_layout.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Returns whether a run may have left the file before its data.json.
bool is_leftover(const fs::path& path) {
  return path.filename() == DirectoryLock::kFile || path.filename() == kRunCheckpoints ||
         path.extension() == ".tmp";
}

// Returns whether the directory is empty except for its lock, or with `resume` for what a run of the config creates
// before its data.json.
bool is_unused(const fs::path& directory, bool resume, const Config& config) {
  const auto is_begun = [&](const fs::path& path) {  // a run that was killed after it had written its config
    return path.filename() == kRunConfig && read_file(path) == to_yaml(config);
  };
  return fs::is_directory(directory) &&
         std::ranges::all_of(fs::directory_iterator(directory), [&](const auto& entry) {
           return resume ? is_leftover(entry.path()) || is_begun(entry.path())
                         : entry.path().filename() == DirectoryLock::kFile;
         });
}

// Returns whether training appends the line after it has saved the checkpoint. A change of a value comes after the
// checkpoint that has the value of before.
bool comes_after(const Json& line, const Checkpoint& checkpoint) {
  const std::int64_t step = line.at("step"), saved = checkpoint.state.step;
  if (step != saved) return step > saved;
  const Json& split = line.at("split");
  try {
    if (split == "change")
      return to_json(checkpoint.config).at(pointer_of(line.at("key").get<std::string>())) == line.at("from");
  } catch (const Json::exception&) {
    return false;  // no change of this version
  }
  return split == "test" || (split == "heads" && !is_logging_step(step));
}

enum class Origin { own, foreign, damaged };

// Returns whose checkpoint it is, and its state. Reads all of one whose header does not name the run: it may be damaged.
// Throws FileError for one that cannot be read.
std::pair<Origin, RunState> origin_of(const fs::path& path, const std::string& identity) {
  const RunState state = header_state(path);
  if (state.run == identity) return {Origin::own, state};
  const auto file = std::make_shared<const InputFile>(path);
  try {
    const SafetensorsFile whole(file, path.string());
    return {Origin::foreign, {}};
  } catch (const CheckpointError&) {
    return {Origin::damaged, {}};
  }
}

}  // namespace

RunWriter::RunWriter(const TrainOptions& options, const OpenConfig& config)
    : run_(options.directory),
      config_(config),
      data_(record_of(config)),
      identity_(run_identity(config, data_)) {
  guarded([&] {
    if (lock(options.resume)) {
      require_same_config(options.new_rate);
      if (data_.step_order == "dealt" && run_.data().step_order.empty())
        remarks_.push_back(
            "begun by version 0.3, which read the rows of a step in another order: rounding and dropout differ from here on");
      choose_checkpoint(options.new_rate);
      check_summary();
      check_metrics();
    }
    fs::create_directories(run_.path() / kRunCheckpoints);
    const NewFile probe(step_path(0));
  });
}

bool RunWriter::lock(bool resume) {
  const fs::path& directory = run_.path();
  require_utf8(directory);
  const auto continues = [&] {
    if (!resume || (!run_.is_run() && checkpoint_files(directory).empty())) return false;
    run_.require_run();
    return true;
  };
  const auto require_unused = [&] {
    if (is_unused(directory, resume, config_)) return;
    const bool may_resume = run_.is_run() || is_unused(directory, true, config_);
    throw CheckpointError(fmt::format("{}: exists and is not an empty directory; choose another with --out{}",
                                      directory.string(),
                                      may_resume ? ", or resume this run with --resume" : ""));
  };
  if (fs::exists(directory) && !continues()) require_unused();
  fs::create_directories(directory);
  lock_.emplace(directory);
  if (!lock_->is_held_here())
    remarks_.push_back(fmt::format(
        "{}: the file system has no locks; see to it that no other process writes to the run", run_.name()));
  if (continues()) return true;
  require_unused();
  return false;
}

void RunWriter::require_same_config(bool any_rate) const {
  if (!run_.has_config()) return;
  std::string lines;
  for (const Difference& difference : differences(run_.config(), config_, "the run", "this config"))
    if (!difference.may_change && !(any_rate && difference.key == kRateKey))
      lines += "\n  " + difference.text;
  require<ConfigError>(lines.empty(),
                       "{}: holds a run with another config:{}\nuse the same values, or start a new run",
                       run_.name(), lines);
  for (const std::string& difference : changed_data(run_, config_)) lines += "\n  " + difference;
  require<ConfigError>(
      lines.empty(),
      "{}: the training data has changed since the run began:{}\nrestore the files, or start a new run",
      run_.name(), lines);
}

void RunWriter::choose_checkpoint(bool any_rate) {
  std::vector<fs::path> files = checkpoint_files(run_.path());
  std::size_t damaged = 0;
  for (; damaged < files.size(); ++damaged) {
    const auto file =
        std::make_shared<const InputFile>(files[damaged]);  // one that cannot be read is not damaged
    std::shared_ptr<const SafetensorsFile> tensors;
    try {
      tensors = std::make_shared<const SafetensorsFile>(file, files[damaged].string());
    } catch (const CheckpointError& e) {
      damaged_.emplace_back(e.what());
      continue;
    }
    newest_ = checkpoint_of(tensors);
    run_.require_own(*newest_, any_rate);
    identity_ = newest_->state.run;
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(damaged));
    break;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto [origin, state] = origin_of(files[i], identity_);
    require_own(origin != Origin::foreign, files[i]);
    if (i < damaged || origin == Origin::damaged) aside_.push_back(files[i]);
    if (i >= damaged && origin == Origin::damaged)
      remarks_.push_back(fmt::format("{}: damaged; set aside", files[i].string()));
    if (newest_ && origin == Origin::own && files[i] == best_path())
      if (const std::string why = other_best(files[i], state, newest_->state); !why.empty())
        throw CheckpointError(why + ", or delete it, then resume");
  }
}

void RunWriter::require_own(bool is_own, const fs::path& file) const {
  require<CheckpointError>(
      is_own, "{}: is not of this run, which would overwrite or delete it; move it elsewhere, then resume",
      file.string());
}

void RunWriter::check_summary() {
  const fs::path file = run_.path() / kRunSummary;
  if (!fs::exists(fs::symlink_status(file))) return;
  const std::string text = read_file(file);
  try {
    const Json summary = parse_json(text);
    const auto is = [&](const char* key, const std::string& value) {
      return summary.is_object() && summary.value(key, Json()) == value;
    };
    require_own(is("run", identity_), file);
    if (!ended()) return;
    // The run may go on with another patience or target than it had.
    const TrainConfig& train = config_.train;
    const bool is_best = newest_->state.has_best_result(train.patience) && fs::exists(best_path());
    const Stopped why = ending(newest_->state, train).value_or(Stopped::interrupted);
    is_complete_ =
        summary.value("final", summary).at("weights_hash") == newest_->weights_hash() &&
        (!summary.contains("result") || is("result", is_best ? "best" : "final")) &&
        is("stopped", std::string(stopped_name(why))) &&
        summary.contains("target_missed") == (has_target(train.target) && why != Stopped::at_target);
  } catch (const Json::exception&) {  // one that is damaged is written again
    require_own(text.empty() || text.find("\"steps\":") != text.npos, file);
  }
}

void RunWriter::check_metrics() {
  const fs::path file = run_.path() / kRunMetrics;
  if (!fs::exists(fs::symlink_status(file))) return;
  bool has_lines = false, is_log = false;
  const std::string cut = read_lines(file, [&](const MetricsLine& line) {
    if (!std::exchange(has_lines, true)) require_own(line.run().empty() || line.run() == identity_, file);
    is_log |= !line.values.is_null();
    if (!newest_ || (!line.values.is_null() && comes_after(line.values, *newest_))) return false;
    metrics_bytes_ = line.end;
    ends_in_line_ = line.is_whole;
    return true;
  });
  require_own(is_log || (!has_lines && kMetricsStart.starts_with(cut.substr(0, kMetricsStart.size()))), file);
}

bool RunWriter::ended() const { return newest_ && fs::path(newest_->file->path()).filename() == kFinal; }

void RunWriter::begin() {
  guarded([&] {
    const fs::path &directory = run_.path(), metrics = directory / kRunMetrics;
    const auto is_aside = [&](const fs::path& path) {
      return std::ranges::find(aside_, path) != aside_.end();
    };
    // Before anything of the run changes: one may be read-only, or a link.
    for (const fs::path& path : {best_path(), final_path(), metrics})
      if (!is_aside(path) && !(path == final_path() && ended())) const NewFile probe(path);
    remove_temporary_files(directory);
    remove_temporary_files(directory / kRunCheckpoints);
    for (const fs::path& path : aside_) fs::rename(path, unused_name(path.string() + ".damaged"));
    // First, as a directory with data.json is a run, which needs a config.
    const fs::path config = run_.config_path();
    if (!fs::exists(config) || !differences(run_.config(), config_, "", "").empty())
      write_file(config, to_yaml(config_));
    const Json now = to_json(data_, directory);
    const fs::path data = directory / kDataRecord;
    if (!fs::exists(data) || canonical_text(to_json(run_.data(), directory)) != canonical_text(now)) {
      Json record{{"format", kRunFormat}};
      record.update(now);
      write_file(data, json_text(record, 2, Json::error_handler_t::replace) + "\n");
    }
  });
}

void RunWriter::append(const Json& line, double seconds) {
  if (is_complete_) return;
  guarded([&] {
    if (!metrics_) {
      metrics_.emplace(run_.path() / kRunMetrics, metrics_bytes_);
      if (!ends_in_line_) metrics_->append("\n");
    }
    Json values = line;
    if (metrics_->size() == 0) values["run"] = identity_;
    values["seconds"] = seconds;  // last, as only they differ between equal runs
    metrics_->append(json_text(values) + "\n");
  });
}

void RunWriter::sync() {
  if (metrics_) guarded([&] { metrics_->sync(); });
}

fs::path RunWriter::step_path(std::int64_t step) const {
  return run_.path() / kRunCheckpoints / step_name(step);
}
fs::path RunWriter::best_path() const { return run_.path() / kRunCheckpoints / kBest; }
fs::path RunWriter::final_path() const { return run_.path() / kRunCheckpoints / kFinal; }

void RunWriter::reopen(std::int64_t final_step) {
  guarded([&] {
    is_complete_ = false;
    fs::remove(run_.path() / kRunSummary);
    if (fs::exists(final_path())) fs::rename(final_path(), step_path(final_step));
  });
}

void RunWriter::prune(bool ended, bool series) {
  guarded([&] {
    std::vector<fs::path> files = step_files(run_.path());
    const std::size_t kept = std::min<std::size_t>(ended ? 1 : 2, files.size());
    files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(kept));
    for (const fs::path& path : files)
      if (!series || !in_series(step_of(path))) fs::remove(path);
  });
}

void RunWriter::finish(const TrainResult& result) {
  if (is_complete_) return;
  guarded([&] {
    sync();
    Json summary = to_json(result);
    summary["run"] = identity_;
    write_file(run_.path() / kRunSummary, json_text(summary, 2) + "\n");
  });
}

}  // namespace thimble
