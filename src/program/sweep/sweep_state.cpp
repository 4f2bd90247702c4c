#include "program/sweep/sweep_state.h"

#include <limits>
#include <set>

#include "program/sweep/halving.h"
#include "program/sweep/run_queue.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/run_directory.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

RunStatus status_of(const Json& json) {
  for (const RunStatus status : {RunStatus::done, RunStatus::missed_target, RunStatus::failed})
    if (json == name(status)) return status;
  return RunStatus::waiting;
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

void write_record(const fs::path& directory, const SweepRun& run) {
  const Json record{
      {"run", run.identity},
      {"status", name(run.status)},
      {"exit", or_null(run.exit)},
      {"error", run.error},
      {"weights_hash", run.result.is_object() ? run.result.value("weights_hash", Json()) : Json()},
      {"halving_losses", run.losses}};
  write_file(run_path(directory, run, ".json"),
             json_text(with_checksum(record), 2, Json::error_handler_t::replace) + "\n");
}

bool read_record(const fs::path& directory, SweepRun& run) {
  const fs::path file = run_path(directory, run, ".json");
  if (!fs::exists(file)) return false;
  run.remark.clear();
  Json record;
  try {
    record = read_json(file);
  } catch (const FileError&) {
  }
  if (has_changed(record) || record.value("run", Json()) != run.identity) {
    run.remark =
        fmt::format("{}: was changed, or is of another run; thimble sweep writes it again", file.string());
    return false;
  }
  try {
    const RunStatus status = status_of(record.at("status"));
    run.losses.clear();
    for (const Json& loss : record.at("halving_losses"))
      run.losses.push_back(loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::infinity());
    if (status == RunStatus::waiting) return false;
    if (status != RunStatus::failed) {
      std::vector<std::string> remarks;
      run.result = RunDirectory(run_path(directory, run)).summary(run.identity, "", remarks);
      if (!remarks.empty()) run.remark = remarks.front();
      if (run.result.is_null()) return false;
      if (run.result.at("weights_hash") != record.at("weights_hash"))
        run.remark = fmt::format("{}: was trained further, to step {}, after the sweep had ended it",
                                 run_path(directory, run).string(), json_text(run.result.at("steps")));
    }
    run.status = status;
    if (record.at("exit").is_number()) run.exit = record.at("exit").get<int>();
    record.at("error").get_to(run.error);
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: invalid: {}", file.string(), e.what()));
  }
  return true;
}

bool read_state(const fs::path& directory, const Halving& halving, std::vector<SweepRun>& runs) {
  const std::set<std::string> names = names_in(directory / "runs");
  const std::size_t before = recorded(runs);
  for (SweepRun& run : runs) {
    if (is_finished(run)) continue;
    if (names.contains(run.name + ".json") && read_record(directory, run)) continue;
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
    write_record(directory, run);
  }
}

void write_sweep_json(const fs::path& directory, const Sweep& sweep, std::vector<SweepRun>& runs) {
  do {
    write_file(directory / "sweep.json", json_text(sweep_json(sweep, runs, directory), 2) + "\n");
  } while (read_state(directory, sweep.halving, runs));
}

RecordedSweep open_sweep(const fs::path& directory) {
  const fs::path file = directory / "sweep.json";
  require<CheckpointError>(fs::exists(file), "{}: not a sweep directory; create one with thimble sweep --out",
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
      }
    }
    read_state(directory, recorded.sweep.halving, recorded.runs);
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: invalid: {}", file.string(), e.what()));
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  return recorded;
}

}  // namespace thimble
