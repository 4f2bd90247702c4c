#include "program/sweep/sweep_runs.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/config/differences.h"
#include "train/data/data_paths.h"
#include "train/files/hash.h"
#include "train/files/path.h"
#include "train/files/text/text.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStatusNames[] = {"waiting",       "running", "interrupted", "done",
                                             "missed target", "failed",  "stopped"};

// Returns "-heads_2" for "model.heads=2".
std::string suffix(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t dot = text.substr(0, equals).rfind('.');
  std::string out = fmt::format("-{}", text.substr(dot == std::string_view::npos ? 0 : dot + 1));
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  std::ranges::replace_if(
      out, [&](char c) { return !is_plain(c); }, '_');
  return out;
}

// Returns a name such as 003-heads_2-seed_42, which the number makes unique. Settings beyond kMaxLength
// characters are left out as a whole, since "lr_5" is not 5e-4.
std::string run_name(std::size_t number, std::size_t digits, const SweepSetting& setting,
                     std::uint64_t seed) {
  constexpr std::size_t kMaxLength = 60;
  std::string settings;
  for (const std::string& text : setting.overrides) {
    const std::string next = text.starts_with("train.seed=") ? "" : suffix(text);
    if (settings.size() + next.size() <= kMaxLength) settings += next;
  }
  return fmt::format("{:0{}}{}-seed_{}", number, digits, settings, seed);
}

// Returns the hash of a setting's values. Data files may move, and the seed is that of each run.
std::string config_hash(const Config& values) {
  Config config = values;
  for (std::string* path : data_paths(config.task)) path->clear();
  config.train.seed = 0;
  config.train.threads = 1;
  return hash_digits(json_text(hashed_values(config), -1, Json::error_handler_t::replace));
}

// Returns {"model.heads": 2}, with the values of the config.
Json overrides_json(const std::vector<std::string>& overrides, const Config& config) {
  const Json values = to_json(config);
  Json out = Json::object();
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    out[key] = values.at(pointer_of(key));
  }
  return out;
}

Json run_json(const SweepRun& run, const fs::path& directory) {
  Json json{{"seed", run.config.train.seed}, {"directory", (directory / "runs" / run.name).string()},
            {"run", run.identity},           {"status", name(run.status)},
            {"exit", or_null(run.exit)},     {"error", run.error.empty() ? Json() : Json(run.error)},
            {"result", run.result}};
  if (!run.losses.empty()) json["halving_losses"] = run.losses;
  if (!run.remark.empty()) json["remark"] = run.remark;
  return json;
}

// Returns a text for each setting in a sweep.json; with equal halving, equal texts mean equal sweeps.
std::vector<std::string> identity(const Json& sweep) {
  std::vector<std::string> out;
  for (const Json& setting : sweep.at("settings")) {
    std::vector<std::uint64_t> seeds;
    for (const Json& run : setting.at("runs")) seeds.push_back(run.at("seed").get<std::uint64_t>());
    out.push_back(fmt::format("{} with seeds {} and a config of hash {}",
                              canonical_text(setting.at("overrides")), json_text(Json(seeds)),
                              setting.at("config_hash").get<std::string>()));
  }
  return out;
}

// Throws CheckpointError if the directory exists and holds a run of another config or other data. `is_further`: it may
// have been trained further.
void require_config(const RunDirectory& there, const SweepRun& run, bool is_further) {
  if (!there.is_run() || !there.has_config()) return;
  const std::vector<std::string> data = changed_data(there, run.config);
  require<CheckpointError>(data.empty(), "{}: trained on other data: {}; choose another directory with --out",
                           there.name(), data.empty() ? "" : data.front());
  auto changed = differences(there.config(), run.config, "the directory", "the sweep");
  std::erase_if(changed, [&](const Difference& d) { return is_further && d.may_change; });
  std::string texts;
  for (const Difference& difference : changed) texts += (texts.empty() ? "" : ", ") + difference.text;
  require<CheckpointError>(texts.empty(),
                           "{}: trained with another config: {}; choose another directory with --out",
                           there.name(), texts);
}

void require_same(const fs::path& directory, const Json& before, const Json& now,
                  const std::vector<SweepRun>& runs) {
  const Json none, &old_halving = before.contains("halving") ? before["halving"] : none;
  const Json& halving = now.contains("halving") ? now["halving"] : none;
  require<CheckpointError>(
      canonical_text(old_halving) == canonical_text(halving),
      "{}: belongs to another sweep: its halving is {}, here {}; choose another directory with --out",
      directory.string(), json_text(old_halving), json_text(halving));
  const std::vector<std::string> old = identity(before), planned = identity(now);
  require<CheckpointError>(
      old.size() == planned.size(),
      "{}: belongs to another sweep: it has {} settings, this one {}; choose another directory with --out",
      directory.string(), old.size(), planned.size());
  for (std::size_t i = 0; i < old.size(); ++i) {
    for (const SweepRun& run : runs)
      if (run.setting == i && old[i] != planned[i]) require_config(directory / "runs" / run.name, run, false);
    require<CheckpointError>(
        old[i] == planned[i],
        "{}: belongs to another sweep: its setting {} is {}, here {}; choose another directory with --out",
        directory.string(), i + 1, old[i], planned[i]);
  }
}

// Returns whether a directory has nothing but what a sweep with these runs makes, other than its sweep.json.
bool is_of_sweep(const fs::path& directory, const std::vector<SweepRun>& runs) {
  const auto is_planned = [&](const auto& entry) {
    const std::string file = entry.path().filename().string();
    return file.ends_with(".tmp") || std::ranges::any_of(runs, [&](const SweepRun& run) {
             return file == run.name || file.starts_with(run.name + ".");
           });
  };
  const auto is_own = [&](const auto& entry) {
    const fs::path& path = entry.path();
    if (path.filename() == "runs") return std::ranges::all_of(fs::directory_iterator(path), is_planned);
    // sweep.json may appear meanwhile, written by a sweep that began at the same time.
    return path.extension() == ".tmp" || path.filename() == "sweep.json" ||
           path.filename().string().starts_with("slurm");
  };
  return fs::is_directory(directory) && std::ranges::all_of(fs::directory_iterator(directory), is_own);
}

}  // namespace

std::string_view name(RunStatus status) { return kStatusNames[static_cast<std::size_t>(status)]; }

std::vector<SweepRun> plan_runs(const Sweep& sweep) {
  const std::size_t count = sweep.settings.size() * std::max<std::size_t>(1, sweep.seeds.size());
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(count).size());
  std::vector<SweepRun> runs;
  for (std::size_t i = 0; i < sweep.settings.size(); ++i) {
    const SweepSetting& setting = sweep.settings[i];
    const DataRecord data = record_of(setting.config);
    const auto seeds = sweep.seeds.empty() ? std::vector{setting.config.train.seed} : sweep.seeds;
    for (const std::uint64_t seed : seeds) {
      SweepRun& run = runs.emplace_back();
      run.setting = i;
      run.config = setting.config;
      run.config.train.seed = seed;
      run.config.train.threads = 1;
      run.name = run_name(runs.size(), digits, setting, seed);
      run.identity = run_identity(run.config, data);
    }
  }
  return runs;
}

bool is_finished(const SweepRun& run) {
  return run.status == RunStatus::done || run.status == RunStatus::missed_target ||
         run.status == RunStatus::failed || run.status == RunStatus::stopped;
}

std::int64_t finished(const std::vector<SweepRun>& runs) { return std::ranges::count_if(runs, is_finished); }

fs::path sweep_directory(const Sweep& sweep, const std::vector<SweepRun>& runs) {
  std::string all;
  for (const SweepRun& run : runs) all += run.name + '\n' + named_values(run.config);
  return path_under_runs("sweep-" + fs::path(sweep.file).stem().string(), all);
}

Spread metric_spread(const std::vector<SweepRun>& runs, std::size_t setting, std::string_view metric) {
  const Json::json_pointer pointer{std::string(metric)};
  std::vector<double> values;
  for (const SweepRun& run : runs)
    if (run.setting == setting && run.result.contains(pointer) && run.result.at(pointer).is_number())
      values.push_back(run.result.at(pointer).get<double>());
  return spread(values);
}

Json to_json(const Sweep& sweep, const std::vector<SweepRun>& runs, const fs::path& directory) {
  Json settings = Json::array();
  for (std::size_t i = 0; i < sweep.settings.size(); ++i) {
    const SweepSetting& setting = sweep.settings[i];
    Json entry{{"overrides", overrides_json(setting.overrides, setting.config)},
               {"config_hash", config_hash(setting.config)},
               {"runs", Json::array()}};
    for (const SweepRun& run : runs)
      if (run.setting == i) entry["runs"].push_back(run_json(run, directory));
    for (const std::string key : {"count", "mean", "sd", "min", "max"}) entry[key] = Json::object();
    for (const std::string_view metric : kSweepMetrics) {
      const Spread values = metric_spread(runs, i, metric);
      if (values.count == 0) continue;
      const Json::json_pointer pointer{std::string(metric)};
      entry["count"][pointer] = values.count;
      entry["mean"][pointer] = values.mean;
      entry["sd"][pointer] = or_null(values.sd);
      entry["min"][pointer] = values.min;
      entry["max"][pointer] = values.max;
    }
    settings.push_back(std::move(entry));
  }
  const auto has_failed = [](const SweepRun& run) { return run.status == RunStatus::failed; };
  Json json{{"sweep", sweep.file}, {"config", sweep.config}, {"overrides", sweep.overrides}};
  if (!sweep.halving.steps.empty())
    json["halving"] = {{"steps", sweep.halving.steps}, {"reduction_factor", sweep.halving.reduction_factor}};
  json["settings"] = settings;
  json["failed"] = std::ranges::count_if(runs, has_failed);
  return json;
}

Json sweep_json(const Sweep& sweep, const std::vector<SweepRun>& runs, const fs::path& directory) {
  Json json{{"format", kSweepFormat}};
  json.update(to_json(sweep, runs, directory));
  return json;
}

std::string unreadable_sweep_json(const fs::path& directory) {
  const bool is_there = fs::exists(directory / "sweep.json");
  return fmt::format("{}: {}; the command of the sweep writes it again: thimble sweep FILE --out {}{}",
                     (directory / "sweep.json").string(),
                     is_there ? "is not what this version writes" : "is missing", shell_path(directory),
                     is_there ? "" : "; where there was no sweep, name the runs: thimble compare RUN RUN");
}

Json read_sweep_json(const fs::path& directory) {
  const fs::path file = directory / "sweep.json";
  if (!fs::exists(file)) return nullptr;
  require<FileError>(!fs::is_directory(file),
                     "{}: is a directory; move it away, then repeat the command of the sweep", file.string());
  const std::string text = read_file(file);
  try {
    Json sweep = parse_json(text);
    identity(sweep);
    return sweep.at("format") == kSweepFormat ? sweep : Json();
  } catch (const Json::exception&) {
    return nullptr;
  }
}

bool is_sweep(const fs::path& directory) {
  try {
    return !read_sweep_json(directory).is_null();
  } catch (const FileError&) {
    return false;
  }
}

void require_same_sweep(const fs::path& directory, const Sweep& sweep, const std::vector<SweepRun>& runs) {
  if (!fs::exists(directory)) return;
  try {
    const Json before = read_sweep_json(directory);
    const bool has_file = fs::exists(directory / "sweep.json"), has_runs = fs::exists(directory / "runs");
    require<CheckpointError>(!before.is_null() || (is_of_sweep(directory, runs) && (has_runs || !has_file)),
                             "{}: exists and is not the directory of this sweep; choose another with --out",
                             directory.string());
    if (!before.is_null()) require_same(directory, before, to_json(sweep, runs, directory), runs);
    for (const SweepRun& run : runs) require_config(directory / "runs" / run.name, run, true);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

}  // namespace thimble
