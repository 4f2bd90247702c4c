#include "train/runs/run_writer.h"

#include <algorithm>
#include <map>
#include <memory>

#include "thimble/train/run.h"
#include "train/config/differences.h"
#include "train/files/path.h"
#include "train/runs/run_layout.h"
#include "train/step/forward.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr const char *kDamaged = ".damaged", *kReplaced = ".replaced";

// Returns whether a run may have left the file before its data.json.
bool is_leftover(const fs::path& path) {
  return path.filename() == DirectoryLock::kFile || path.filename() == kRunCheckpoints ||
         path.extension() == ".tmp";
}

// Returns whether the directory is empty except for its lock, or with `resume` for what a run creates before
// its data.json.
bool is_unused(const fs::path& directory, bool resume) {
  return fs::is_directory(directory) &&
         std::ranges::all_of(fs::directory_iterator(directory), [&](const auto& entry) {
           return resume ? is_leftover(entry.path()) : entry.path().filename() == DirectoryLock::kFile;
         });
}

// Returns the identity of the run that wrote the checkpoint, by its header; "" if it states none.
std::string run_of(const std::map<std::string, std::string>& metadata) {
  try {
    return run_state(parse_json(metadata.at("state"))).run;
  } catch (const std::exception&) {
    return "";
  }
}

enum class Origin { own, foreign, damaged };

// Returns whose checkpoint it is. Reads all of one whose header does not name the run: it may be damaged.
// Throws FileError for one that cannot be read.
Origin origin_of(const fs::path& path, const std::string& identity) {
  const auto file = std::make_shared<const InputFile>(path);
  try {
    if (run_of(read_safetensors_metadata(*file, path.string())) == identity) return Origin::own;
    const SafetensorsFile whole(file, path.string());
    return Origin::foreign;
  } catch (const CheckpointError&) {
    return Origin::damaged;
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
      check_metrics(options.new_metrics);
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
    require<CheckpointError>(is_unused(directory, resume),
                             "{}: exists and is not an empty directory; choose another with --out{}",
                             directory.string(), run_.is_run() ? ", or resume this run with --resume" : "");
  };
  if (fs::exists(directory) && !continues()) require_unused();
  fs::create_directories(directory);
  lock_.emplace(directory);
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
    const Origin origin = origin_of(files[i], identity_);
    require_own(origin != Origin::foreign, files[i]);
    if (i < damaged || origin == Origin::damaged) aside_.emplace_back(files[i], kDamaged);
    if (i >= damaged && origin == Origin::damaged)
      remarks_.push_back(fmt::format("{}: damaged; set aside", files[i].string()));
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
  Json summary;
  const std::string text = read_file(file);
  try {
    summary = parse_json(text);
    if (ended() && !has_changed(summary)) end_ = metrics_mark(summary.at("metrics"));
  } catch (const Json::exception&) {
  }
  const Json run = summary.is_object() ? summary.value("run", Json()) : Json();
  require_own(summary.is_null() || run == identity_, file);
  if (!summary.is_null() && !has_changed(summary)) return;
  remarks_.push_back(fmt::format("{}: was changed; set aside", file.string()));
  aside_.emplace_back(file, kDamaged);
}

void RunWriter::check_metrics(bool replaces) {
  const fs::path file = run_.path() / kRunMetrics;
  const RunState state = newest_ ? newest_->state : RunState();
  const MetricsScan scan = scan_metrics(file, state.metrics, end_, [](const Json&) {});
  const bool begins_after = scan.begins_after(state.step);  // all lines are after the checkpoint
  const bool is_own = scan.run == identity_ && (begins_after || scan.checkpoint != Fit::differs);
  if (scan.lines > 0 && !is_own) {
    require<CheckpointError>(
        replaces,
        "{}: has other values than the run wrote, or is of another run; restore the file, or give --new-metrics to keep it as {}{} and begin a new one",
        file.string(), kRunMetrics.string(), kReplaced);
    remarks_.push_back(
        fmt::format("{}: has other values than the run wrote; kept as {}{}, and a new file begins",
                    file.string(), kRunMetrics.string(), kReplaced));
    aside_.emplace_back(file, kReplaced);
  } else if (scan.checkpoint == Fit::missing && !begins_after) {
    remarks_.push_back(fmt::format(
        "{}: {} of {} lines are there; a new file begins{}", file.string(), scan.lines, state.metrics.lines,
        scan.lines > 0 ? fmt::format(", the old one is kept as {}{}", kRunMetrics.string(), kReplaced) : ""));
    if (scan.lines > 0) aside_.emplace_back(file, kReplaced);
  } else if (!begins_after) {
    mark_ = state.metrics;
    metrics_bytes_ = scan.bytes;
    ends_in_line_ = scan.ends_in_line;
    is_complete_ = end_.lines > 0 && scan.end == Fit::whole;
  }
}

bool RunWriter::ended() const { return newest_ && fs::path(newest_->file->path()).filename() == kFinal; }

void RunWriter::begin() {
  guarded([&] {
    const fs::path &directory = run_.path(), metrics = directory / kRunMetrics;
    const auto is_aside = [&](const fs::path& path) {
      return std::ranges::find(aside_, path, &std::pair<fs::path, std::string>::first) != aside_.end();
    };
    // Before anything of the run changes: one may be read-only, or a link.
    for (const fs::path& path : {best_path(), final_path(), metrics})
      if (!is_aside(path) && !(path == final_path() && ended())) const NewFile probe(path);
    remove_temporary_files(directory);
    remove_temporary_files(directory / kRunCheckpoints);
    for (const auto& [path, ending] : aside_) fs::rename(path, unused_name(path.string() + ending));
    const Json now = to_json(data_, directory);
    const fs::path data = directory / kDataRecord;
    if (!fs::exists(data) || canonical_text(to_json(run_.data(), directory)) != canonical_text(now)) {
      Json record{{"format", kRunFormat}};
      record.update(now);
      write_file(data, json_text(record, 2, Json::error_handler_t::replace) + "\n");
    }
    const fs::path config = run_.config_path();
    if (!fs::exists(config) || !differences(run_.config(), config_, "", "").empty())
      write_file(config, to_yaml(config_));
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
    if (mark_.lines == 0) values["run"] = identity_;
    mark_.add(values);
    values["seconds"] = seconds;  // last, as only they differ between equal runs
    metrics_->append(json_text(values) + "\n");
  });
}

MetricsMark RunWriter::sync() {
  if (metrics_) guarded([&] { metrics_->sync(); });
  return mark_;
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
    const MetricsMark mark = sync();
    Json summary = to_json(result);
    summary["run"] = identity_;
    summary["metrics"] = to_json(mark);
    write_file(run_.path() / kRunSummary, json_text(with_checksum(summary), 2) + "\n");
  });
}

}  // namespace thimble
