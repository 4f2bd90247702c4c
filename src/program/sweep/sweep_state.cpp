#include "program/sweep/sweep_state.h"

#include <algorithm>
#include <limits>
#include <set>

#include "program/sweep/halving.h"
#include "program/sweep/run_queue.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/run_directory.h"
#include "train/runs/run_layout.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Reads the losses by which halving decides, from a newest checkpoint that was not read before.
void read_losses(const Halving& halving, const RunDirectory& trained, bool ended, SweepRun& run) {
  if (halving.steps.empty()) return;
  const std::vector<fs::path> checkpoints = checkpoint_files(trained.path());
  if (!ended && (checkpoints.empty() || checkpoints.front() == run.checkpoint)) return;
  std::vector<std::string> ignored;
  const std::string newest =
      checkpoints.empty() ? "" : checkpoints.front().string();  // the result may be an earlier one
  run.losses = halving_losses(halving, trained, trained.checkpoint(newest, ignored).state, ended);
  run.checkpoint = checkpoints.front();
}

// Reads why a run failed. Returns whether it did: a record that is damaged or of another run counts for nothing.
bool read_failure(const fs::path& directory, const Halving& halving, SweepRun& run) {
  const fs::path file = run_path(directory, run, ".json");
  if (!fs::exists(file)) return false;
  try {
    const Json record = read_json(file);
    // Version 0.3 has records of other runs, too.
    if (record.at("run") != run.identity || record.value("status", "failed") != "failed") return false;
    const auto error = record.at("error").get<std::string>();
    run.exit = record.at("exit").get<int>();
    run.error = error;
  } catch (const std::exception&) {
    return false;
  }
  run.status = RunStatus::failed;
  if (run.exit == kDiverged) run.losses.resize(halving.steps.size(), std::numeric_limits<double>::infinity());
  return true;
}

// Returns the names of the files in a directory.
std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(directory, missing))
    names.insert(entry.path().filename().string());
  return names;
}

// Returns a number that grows with every record.
std::size_t recorded(const std::vector<SweepRun>& runs) {
  std::size_t count = 0;
  for (const SweepRun& run : runs) count += run.losses.size() + (is_finished(run) ? 1 : 0);
  return count;
}

}  // namespace

fs::path run_path(const fs::path& directory, const SweepRun& run, const std::string& ending) {
  return directory / "runs" / (run.name + ending);
}

void write_failure(const fs::path& directory, const SweepRun& run, int exit, const std::string& error) {
  const Json record{{"run", run.identity}, {"exit", exit}, {"error", error}};
  write_file(run_path(directory, run, ".json"), json_text(record, 2, Json::error_handler_t::replace) + "\n");
}

std::string last_message(const fs::path& directory, const SweepRun& run) {
  const fs::path log = run_path(directory, run, ".log");
  const std::string program = "\nthimble: ", text = fs::exists(log) ? "\n" + read_file(log) : "";
  const std::size_t end = text.find_last_not_of("\r\n "), message = text.rfind(program);
  if (end == std::string::npos) return "";
  const std::size_t begin =
      message == std::string::npos ? text.find_last_of("\r\n", end) + 1 : message + program.size();
  return text.substr(begin, end + 1 - begin);
}

bool read_run(const fs::path& directory, const Halving& halving, SweepRun& run) {
  const RunDirectory trained = run_path(directory, run);
  std::vector<std::string> remarks;
  const Json result = trained.summary(run.identity, "", remarks);
  try {
    read_losses(halving, trained, !result.is_null(), run);
  } catch (const Error& e) {
    remarks.emplace_back(e.what());
  }
  if (!remarks.empty()) run.remark = remarks.front();
  if (!remarks.empty() || result.is_null()) return read_failure(directory, halving, run);
  const auto leaks = [&](const char* split) { return result.value(split, Json::object()).contains("leak"); };
  const bool missed = result.contains("target_missed") || leaks("validation") || leaks("test");
  run.status = missed ? RunStatus::missed_target : RunStatus::done;
  run.exit = missed ? 1 : 0;
  if (missed) run.error = last_message(directory, run);
  run.result = result;
  const Json steps = result.value("steps", Json());
  if (steps.is_number() && run.config.train.steps > 0 && steps > run.config.train.steps)
    run.remark = fmt::format("{}: was trained further, to step {}, after the sweep had ended it",
                             trained.name(), json_text(steps));
  return true;
}

bool read_state(const fs::path& directory, const Halving& halving, std::vector<SweepRun>& runs) {
  const std::set<std::string> names = names_in(directory / "runs");
  const std::size_t before = recorded(runs);
  for (SweepRun& run : runs) {
    if (is_finished(run)) continue;
    const bool has_files = names.contains(run.name) || names.contains(run.name + ".json");
    if (has_files && read_run(directory, halving, run)) continue;
    if (!run_queue().holder(run_path(directory, run)).empty())
      run.status = RunStatus::running;
    else
      run.status = names.contains(run.name) ? RunStatus::interrupted : RunStatus::waiting;
  }
  apply_halving(halving, runs);
  return recorded(runs) != before;
}

void forget_failures(const fs::path& directory, const Halving& halving, std::vector<SweepRun>& runs) {
  for (SweepRun& run : runs) {
    const bool counts = !halving.steps.empty() && run.exit == kDiverged;
    if (run.status != RunStatus::failed || counts) continue;
    run.status = RunStatus::waiting;
    run.exit.reset();
    run.error.clear();
    fs::remove(run_path(directory, run, ".json"));
  }
}

void write_sweep_json(const fs::path& directory, const Sweep& sweep, std::vector<SweepRun>& runs) {
  do {
    write_file(directory / "sweep.json", json_text(sweep_json(sweep, runs, directory), 2) + "\n");
  } while (read_state(directory, sweep.halving, runs));
}

RecordedSweep open_sweep(const fs::path& directory) {
  require<CheckpointError>(fs::exists(directory / "sweep.json") || fs::is_directory(directory / "runs"),
                           "{}: not a sweep directory; create one with thimble sweep --out",
                           directory.string());
  RecordedSweep recorded;
  try {
    const Json json = read_sweep_json(directory);
    if (json.contains("halving")) {
      json["halving"].at("steps").get_to(recorded.sweep.halving.steps);
      json["halving"].at("reduction_factor").get_to(recorded.sweep.halving.reduction_factor);
    }
    for (const Json& setting : json.at("settings")) {
      SweepSetting& to = recorded.sweep.settings.emplace_back();
      for (const auto& [key, value] : setting.at("overrides").items())
        to.overrides.push_back(
            fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : json_text(value)));
      for (const Json& from : setting.at("runs")) {
        SweepRun& run = recorded.runs.emplace_back();
        run.setting = recorded.sweep.settings.size() - 1;
        from.at("seed").get_to(run.config.train.seed);
        run.name = fs::path(from.at("directory").get<std::string>()).filename().string();
        from.at("run").get_to(run.identity);
        run.remark = from.value("remark", "");
        run.config.train.steps =
            from.at("result").is_null() ? 0 : from["result"].at("steps").get<std::int64_t>();
      }
    }
    read_state(directory, recorded.sweep.halving, recorded.runs);
  } catch (const Json::exception&) {
    throw CheckpointError(unreadable_sweep_json(directory));
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  return recorded;
}

}  // namespace thimble
