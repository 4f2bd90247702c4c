#include "program/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "program/sweep/sweep_runs.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/run.h"
#include "train/files/hash.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// What a run has recorded.
struct RecordedRun {
  std::string identity;
  Json config, result = nullptr;  // flat, "train.steps" and so on; summary.json
  std::vector<std::pair<std::string, std::string>> records;
  std::vector<CurvePoint> curves;
};
using RecordedRuns = std::vector<std::vector<RecordedRun>>;  // by compared run

constexpr const char* kDataFiles = "data files";  // a record
constexpr std::string_view kMetrics[] = {
    "/train/loss",
    "/validation/loss",
    "/validation/accuracy",
    "/validation/sequence_accuracy",
    "/validation/exact_match",
    "/test/loss",
    "/test/accuracy",
    "/test/sequence_accuracy",
    "/test/exact_match",
    "/steps",
    "/result_step",
    "/parameters",
    "/seconds",
};
constexpr std::pair<std::string_view, std::string_view> kCurves[] = {
    {"validation", "loss"}, {"validation", "accuracy"}, {"train", "loss"}};

// Returns the values of a config by dotted key.
Json flat(const Json& config, const std::string& prefix = "") {
  Json out = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (value.is_object())
      out.update(flat(value, prefix + key + "."));
    else
      out[prefix + key] = value;
  }
  return out;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

// Adds the vocabulary and the data files of a run.
void add_data(const DataRecord& data, RecordedRun& run) {
  std::string all, files;
  for (const std::string& token : data.vocabulary) all += token + '\n';
  run.records.emplace_back(
      "vocabulary", fmt::format("{} tokens, {}", data.vocabulary.size(), hash_digits(all).substr(0, 8)));
  for (const DataFile& one : data.files) files += (files.empty() ? "" : " ") + one.hash.substr(0, 8);
  if (!files.empty()) run.records.emplace_back(kDataFiles, files);
}

// Reads what the run has recorded up to its newest checkpoint, which is open.
RecordedRun read_run(const RunDirectory& directory, const Checkpoint& newest,
                     std::vector<std::string>& remarks) {
  RecordedRun run;
  run.identity = newest.state.run;
  run.config = flat(to_json(newest.config));
  add_data(directory.data(), run);
  const bool has_ended = ending(newest.state, newest.config.train) || directory.has_best_result();
  run.result = directory.summary(run.identity, has_ended ? newest.weights_hash() : "", remarks);
  if (run.result.contains("result") && run.result["result"] == "best")
    run.result["result_step"] = run.result.value(Json::json_pointer("/best/step"), Json());
  for (const auto& [key, name] : {std::pair("version", "thimble version"), {"weights_hash", "weights"}})
    if (run.result.contains(key)) run.records.emplace_back(name, text_of(run.result[key]));
  Timeline timeline = read_timeline(directory, newest.state);
  std::ranges::move(timeline.remarks, std::back_inserter(remarks));
  run.curves = std::move(timeline.curves);
  return run;
}

// Adds a run that the sweep.json describes.
void add_run_of_sweep(const RunDirectory& place, const Json& described, std::vector<std::string>& remarks,
                      std::vector<RecordedRun>& runs) {
  RecordedRun run = read_run(place, place.checkpoint("", remarks), remarks);
  require<CheckpointError>(described.at("run") == run.identity,
                           "{}: is not the run that sweep.json describes; restore it", place.name());
  const Json& result = described.at("result");
  if (run.result.is_null()) {
    remarks.push_back(
        fmt::format("{}: its result is that of sweep.json, as it has no summary.json", place.name()));
    run.result = result;
  } else if (run.result.at("weights_hash") != result.at("weights_hash")) {
    remarks.push_back(fmt::format("{}: was trained further, to step {}, after the sweep had ended it",
                                  place.name(), json_text(run.result.at("steps"))));
  }
  runs.push_back(std::move(run));
}

// Adds the settings of a sweep. The run directories are those below the sweep's, wherever it is now.
void add_sweep(const fs::path& directory, Comparison& comparison, RecordedRuns& recorded) {
  try {
    const Json sweep = read_sweep_json(directory);
    std::vector<std::vector<std::string>> overrides;
    for (const Json& setting : sweep.at("settings")) {
      overrides.emplace_back();
      for (const auto& [key, value] : setting.at("overrides").items())
        overrides.back().push_back(fmt::format("{}={}", key, text_of(value)));
    }
    const std::vector<std::string> labels = setting_labels(overrides);
    auto label = labels.begin();
    for (const Json& setting : sweep.at("settings")) {
      ComparedRun& run = comparison.runs.emplace_back();
      run.parameters = setting.at("overrides");
      run.name = *label++;
      auto& runs = recorded.emplace_back();
      for (const Json& one : setting.at("runs")) {
        const RunDirectory place =
            directory / "runs" / fs::path(one.at("directory").get<std::string>()).filename();
        if (one.at("result").is_null()) {
          ++run.failed;
          continue;
        }
        run.directories.push_back(place.path());
        add_run_of_sweep(place, one, comparison.remarks, runs);
      }
    }
  } catch (const Json::exception&) {
    throw CheckpointError(unreadable_sweep_json(directory));
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

// Removes the folders that the names of all runs start with.
void shorten_names(std::vector<ComparedRun>& runs) {
  for (;;) {
    std::set<std::string> starts;
    for (const ComparedRun& run : runs) {
      const std::size_t slash = run.name.find('/');
      starts.insert(slash == std::string::npos ? "" : run.name.substr(0, slash + 1));
    }
    if (starts.size() != 1 || starts.begin()->empty()) return;
    for (ComparedRun& run : runs) run.name.erase(0, starts.begin()->size());
  }
}

// Returns the value of a compared run: those of its runs in words.
std::string joined(const std::vector<std::string>& values) {
  constexpr std::size_t kMaxLength = 24;
  std::vector<std::string> different;
  for (const std::string& value : values)
    if (std::ranges::find(different, value) == different.end()) different.push_back(value);
  std::string all;
  for (const std::string& value : different) all += (all.empty() ? "" : ", ") + value;
  return different.size() > 1 && all.size() > kMaxLength ? counted(std::ssize(different), "value") : all;
}

// Returns the row of a key; value(run) is "" where a run has none.
template <class F>
ComparedValue row_of(const std::string& key, const RecordedRuns& recorded, const F& value) {
  ComparedValue row{.key = key, .values = {}};
  for (const std::vector<RecordedRun>& runs : recorded) {
    std::vector<std::string> values;
    for (const RecordedRun& run : runs) values.push_back(value(run));
    row.values.push_back(joined(values));
    row.differs |= row.values.back() != row.values.front();
  }
  return row;
}

// Returns all keys, those of later runs after the key that precedes them there.
std::vector<std::string> all_keys(const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> keys;
  for (const std::vector<std::string>& list : lists) {
    auto place = keys.begin();
    for (const std::string& key : list) {
      auto found = std::ranges::find(keys, key);
      if (found == keys.end()) found = keys.insert(place, key);
      place = found + 1;
    }
  }
  return keys;
}

// Returns whether runs differ that have a value: what a run has not recorded is no difference.
bool differ(const std::vector<std::string>& values) {
  std::set<std::string> known(values.begin(), values.end());
  known.erase("");
  return known.size() > 1;
}

void compare_values(const RecordedRuns& recorded, Comparison& comparison) {
  std::vector<std::vector<std::string>> keys, names;
  for (const auto& runs : recorded)
    for (const RecordedRun& run : runs) {
      keys.emplace_back();
      names.emplace_back();
      for (const auto& [key, value] : run.config.items()) keys.back().push_back(key);
      for (const auto& [name, value] : run.records) names.back().push_back(name);
    }
  for (const std::string& key : all_keys(keys))
    comparison.config.push_back(row_of(key, recorded, [&](const RecordedRun& run) {
      return run.config.contains(key) ? text_of(run.config[key]) : std::string();
    }));
  for (const std::string& name : all_keys(names)) {
    ComparedValue row = row_of(name, recorded, [&](const RecordedRun& run) {
      for (const auto& [found, value] : run.records)
        if (found == name) return value;
      return std::string();
    });
    row.differs = differ(row.values);
    comparison.records.push_back(std::move(row));
  }
}

// Returns the keys and records of the data in which runs differ, where both are known. Data files are compared
// by content, not by path; the seed, of which random sequences depend too, does not count.
std::vector<std::string> differing_data(const Comparison& comparison) {
  std::vector<std::string> keys;
  for (const ComparedValue& row : comparison.config) {
    const bool is_data = row.key.starts_with("task.") || row.key.starts_with("data.");
    if (is_data && !row.key.ends_with("file") && differ(row.values)) keys.push_back(row.key);
  }
  for (const ComparedValue& row : comparison.records)
    if (row.key == kDataFiles && row.differs) keys.push_back(row.key);
  return keys;
}

// Marks the best medians of a loss or an accuracy, unless all are the same.
void mark_best(ComparedResult& result) {
  const bool is_loss = result.metric.ends_with("/loss");
  if (!is_loss && !result.metric.ends_with("accuracy") && !result.metric.ends_with("exact_match")) return;
  double best = std::nan("");
  for (const Spread& run : result.runs)
    if (run.count > 0) best = is_loss ? std::fmin(best, run.median) : std::fmax(best, run.median);
  for (std::size_t i = 0; i < result.runs.size(); ++i)
    result.is_best[i] = result.runs[i].count > 0 && result.runs[i].median == best;
  const auto is_worse = [&](const Spread& run) { return run.count > 0 && run.median != best; };
  if (std::ranges::none_of(result.runs, is_worse)) result.is_best.assign(result.runs.size(), false);
}

void compare_results(const RecordedRuns& recorded, Comparison& comparison) {
  std::set<std::string> tasks;
  for (const auto& runs : recorded)
    for (const RecordedRun& run : runs) tasks.insert(text_of(run.config["task.name"]));
  for (const std::string_view metric : kMetrics) {
    const Json::json_pointer pointer{std::string(metric)};
    ComparedResult result{.metric = metric, .runs = {}, .is_best = std::vector<bool>(recorded.size())};
    std::int64_t count = 0;
    for (const auto& runs : recorded) {
      std::vector<double> values;
      for (const RecordedRun& run : runs)
        if (run.result.contains(pointer) && run.result.at(pointer).is_number())
          values.push_back(run.result.at(pointer).get<double>());
      count += std::ssize(values);
      result.runs.push_back(spread(std::move(values)));
    }
    if (tasks.size() == 1 && recorded.size() > 1) mark_best(result);
    if (count > 0) comparison.results.push_back(std::move(result));
  }
}

// Returns a curve over the seeds, with at most `most` evenly spaced points, including the last.
std::vector<CurveSpread> curve_of(const std::vector<RecordedRun>& runs, std::string_view split,
                                  double CurvePoint::*value, std::size_t most) {
  std::map<std::int64_t, std::vector<double>> steps;
  for (const RecordedRun& run : runs)
    for (const CurvePoint& point : run.curves)
      if (point.split == split && std::isfinite(point.*value)) steps[point.step].push_back(point.*value);
  const std::size_t every = (steps.size() + most - 1) / most;
  std::size_t left = steps.size();
  std::vector<CurveSpread> curve;
  for (auto& [step, values] : steps)
    if (--left % every == 0) curve.push_back({step, spread(std::move(values))});
  return curve;
}

void compare_curves(const RecordedRuns& recorded, Comparison& comparison) {
  constexpr std::size_t kAllPoints = 20000, kFewPoints = 40, kManyPoints = 400;
  const std::size_t most = std::clamp(kAllPoints / recorded.size(), kFewPoints, kManyPoints);
  for (const auto& [split, metric] : kCurves) {
    ComparedCurve curve{.split = split, .metric = metric, .runs = {}};
    for (const auto& runs : recorded)
      curve.runs.push_back(
          curve_of(runs, split, metric == "loss" ? &CurvePoint::loss : &CurvePoint::accuracy, most));
    if (std::ranges::any_of(curve.runs, [](const auto& run) { return !run.empty(); }))
      comparison.curves.push_back(std::move(curve));
  }
}

}  // namespace

Comparison compare(const std::vector<std::string>& directories, const CompareOptions& options) {
  Comparison comparison;
  RecordedRuns recorded;
  std::vector<ModelSource> models;
  for (const std::string& directory : directories) {
    const std::size_t first = comparison.runs.size();
    const auto has = [&](const char* name) { return fs::exists(fs::path(directory) / name); };
    if ((has("sweep.json") || has("runs")) && !RunDirectory(directory).is_run()) {
      comparison.has_sweep = true;
      add_sweep(directory, comparison, recorded);
    } else {
      models.push_back(open_run(directory));
      ModelSource& model = models.back();
      std::ranges::copy(model.changes, std::back_inserter(comparison.changes));
      std::ranges::copy(model.remarks, std::back_inserter(comparison.remarks));
      comparison.runs.push_back({.name = "", .directories = {directory}});
      const Checkpoint newest = checkpoint_of(model.file);
      recorded.push_back({read_run(model.run, newest, comparison.remarks)});
      if (ending(newest.state, newest.config.train) && !model.run.has_summary())
        comparison.remarks.push_back(fmt::format(
            "{}: has no summary.json; its numbers are left out; measure them with thimble eval {}", directory,
            shell_path(directory)));
    }
    const std::string path = fs::path(directory).lexically_normal().generic_string();
    if (directories.size() > 1)
      for (std::size_t i = first; i < comparison.runs.size(); ++i) {
        std::string& name = comparison.runs[i].name;
        name = path.substr(0, path.find_last_not_of('/') + 1) + (name.empty() ? "" : "/" + name);
      }
  }
  std::int64_t runs = 0;
  for (const ComparedRun& run : comparison.runs) runs += std::ssize(run.directories) + run.failed;
  require<ConfigError>(
      runs > 1 || (comparison.has_sweep && runs > 0),
      "compare: {}; requires at least 2, or a sweep with at least 1; give another run directory",
      counted(runs, "run"));
  if (directories.size() > 1) shorten_names(comparison.runs);
  compare_values(recorded, comparison);
  comparison.data_differs = differing_data(comparison);
  compare_results(recorded, comparison);
  compare_curves(recorded, comparison);
  if (comparison.has_sweep) return comparison;
  comparison.tokens = vocabulary(models[0]);
  for (const ModelSource& model : models) comparison.models.push_back(model.config.model);
  for (std::size_t i = 1; i < models.size(); ++i)
    comparison.heads.push_back(
        {.run = i, .heads = compare_heads(models[0], models[i], options.sequences, options.examples)});
  return comparison;
}

}  // namespace thimble
