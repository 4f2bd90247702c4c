#include "thimble/train/run_files.h"

#include <algorithm>
#include <map>

#include "thimble/config/differences.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/hash.h"
#include "thimble/core/text.h"
#include "train/run_layout.h"
#include "train/run_state.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCheck = R"(,"check":")";
constexpr std::size_t kDigits = 16;

using Metadata = std::map<std::string, std::string>;

// Returns the state in the metadata of a checkpoint; without an identity if the file has none.
RunState state_of(const Metadata& metadata, const std::string& path) {
  const auto found = metadata.find("state");
  if (found == metadata.end()) return {};
  try {
    return run_state(parse_json(found->second));
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: invalid state: {}", path, e.what()));
  }
}

RunState newest_state(const fs::path& run) {
  const auto path = newest_checkpoint(run);
  return path ? state_of(read_safetensors_metadata(*path), path->string()) : RunState();
}

std::string checksum_of(Json object) {
  object.erase("checksum");
  return hash_digits(json_text(object, -1, Json::error_handler_t::replace));
}

// Returns changes.json; an empty list if there is none.
Json read_changes(const fs::path& run) {
  const fs::path file = run / kRunChanges;
  if (!fs::exists(file)) return Json::array();
  Json changes = read_json(file);
  const auto is_change = [](const Json& change) {
    return change.is_object() && change.contains("step") && change["step"].is_number_integer() &&
           change.contains("key") && change["key"].is_string() && change.contains("from") &&
           change.contains("to");
  };
  require<CheckpointError>(changes.is_array() && std::ranges::all_of(changes, is_change),
                           "{}: not a list of changes; restore the file", file.string());
  return changes;
}

// Returns whether the changes since the step lead from one value of the key to the other. At the step itself a
// checkpoint may have been saved between several changes, which the list has as one.
bool is_recorded(const Json& changes, std::int64_t step, const std::string& key, Json from, const Json& to) {
  for (const Json& change : changes) {
    if (change["key"] != key || change["step"].get<std::int64_t>() < step) continue;
    if (change["from"] != from && change["step"] != step) return false;
    from = change["to"];
  }
  return from == to;
}

std::string config_differences(const SafetensorsFile& checkpoint, const Config& trained, const Config& now,
                               const fs::path& run) {
  const std::int64_t step = state_of(checkpoint.metadata(), checkpoint.path()).step;
  const Json now_values = to_json(now), trained_values = to_json(trained), changes = read_changes(run);
  const auto value = [](const Json& values, const std::string& key) {
    return values.value(pointer_of(key), Json());
  };
  std::string lines;
  for (const Difference& d : differences(trained, now, "the checkpoint", "config.yaml"))
    if (!d.may_change &&
        !is_recorded(changes, step, d.key, value(trained_values, d.key), value(now_values, d.key)))
      lines += "\n  " + d.text;
  return lines;
}

std::string data_differences(const std::string& path, const std::string& data, const fs::path& run) {
  const fs::path file = run / kRunData;
  require<CheckpointError>(fs::exists(file),
                           "{}: missing; restore the file, or open the weights alone with --weights {}",
                           file.string(), path);
  std::string lines;
  try {
    for (const std::string& line :
         differing_records(parse_record(data), parse_record(read_file(file)), "the checkpoint", "data.json"))
      lines += "\n  " + line;
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: {}; restore the file", file.string(), e.what()));
  }
  return lines;
}

}  // namespace

std::string MetricsCheck::line(const Json& metrics, double seconds) {
  std::string text = json_text(metrics);
  text.pop_back();
  if (!value_.empty()) {
    value_ = hash_digits(value_ + text);
    text += fmt::format(R"({}{}")", kCheck, value_);
  }
  return fmt::format("{},\"seconds\":{}}}\n", text, json_text(Json(seconds)));
}

bool MetricsCheck::accept(std::string_view line) {
  constexpr std::string_view kSeconds = R"(","seconds":)";
  const std::size_t end = line.rfind(kCheck);
  if (end == line.npos) return false;
  const std::string_view rest = line.substr(end + kCheck.size()), stated = rest.substr(0, kDigits);
  const std::string_view seconds = rest.substr(std::min(rest.size(), kDigits + kSeconds.size()));
  if (rest.substr(stated.size(), kSeconds.size()) != kSeconds || !seconds.ends_with('}')) return false;
  if (!parse_number<double>(seconds.substr(0, seconds.size() - 1))) return false;
  // Without a checkpoint the identity is not known; the first line then begins the chain.
  value_ = value_.empty() ? std::string(stated) : hash_digits(value_ + std::string(line.substr(0, end)));
  return value_ == stated;
}

std::string run_identity(const Config& config, const DataRecord& data) {
  std::string text =
      fixed_values(config) + json_text(Json(data.vocabulary), -1, Json::error_handler_t::replace);
  for (const DataFile& file : data.files) text += fmt::format("\n{} {}", file.key, file.hash);
  return hash_digits(text);
}

std::string read_metrics(const fs::path& run) {
  const fs::path path = run / kRunMetrics;
  if (!fs::exists(fs::symlink_status(path))) return "";
  const RunState newest = newest_state(run);
  const bool has_checkpoint = newest.step > 0;
  std::map<std::uint64_t, std::string> checks;  // by size of the text
  if (has_checkpoint) checks[newest.metrics_bytes] = newest.metrics_check;
  const Json summary = read_summary(run);
  const bool has_ended = summary.contains("metrics");
  if (has_ended) checks[summary["metrics"].at("bytes")] = summary["metrics"].at("check");
  std::string text;
  try {
    text = read_file(path);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  const bool is_checked =
      has_checkpoint ? !newest.run.empty() : text.substr(0, text.find('\n')).find(kCheck) != text.npos;
  if (!is_checked) return text;  // of an older version
  const std::uint64_t least = checks.empty() ? 0 : checks.rbegin()->first;
  require<CheckpointError>(
      text.size() >= least,
      "{}: has {} bytes, but {} were written; it is truncated: restore the file, or delete it to go without",
      path.string(), text.size(), least);
  MetricsCheck check(newest.run);
  std::size_t begin = 0;
  int line = 0;
  bool valid = true;
  while (valid && begin < text.size()) {
    const bool past = begin >= least;
    const std::size_t end = text.find('\n', begin);
    if (end == text.npos && past && text[begin] == '{' && !has_ended)
      break;  // incomplete, after a kill or during training
    valid = end != text.npos && !(has_ended && past) &&
            check.accept(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++line;
    // A line ends where the file ended when the checkpoint or the summary was written.
    const auto next = checks.begin();
    if (next == checks.end() || begin < next->first) continue;
    valid = valid && begin == next->first && check.value() == next->second;
    checks.erase(next);
  }
  require<CheckpointError>(valid,
                           "{}:{}: the line was changed, or belongs to another run; restore the file, or "
                           "delete it to go without",
                           path.string(), line);
  return text;
}

Json read_summary(const fs::path& run) {
  const fs::path path = run / kRunSummary, final_path = run / kRunCheckpoints / kFinal;
  if (!fs::exists(fs::symlink_status(path))) return nullptr;
  Json summary;
  try {
    summary = read_json(path);
  } catch (const FileError& e) {
    throw CheckpointError(fmt::format("{}; restore the file, or resume the run to write it again", e.what()));
  }
  if (!fs::exists(final_path)) return summary;
  const Metadata metadata = read_safetensors_metadata(final_path);
  const std::string identity = state_of(metadata, final_path.string()).run;
  if (identity.empty()) return summary;
  const auto text = [&](const char* key) {
    return summary.is_object() ? summary.value(key, Json()) : Json();
  };
  require<CheckpointError>(
      text("run") == identity && text("weights_hash") == metadata.at("weights_hash"),
      "{}: belongs to another run than {}; restore the file, or resume the run to write it again",
      path.string(), final_path.string());
  require<CheckpointError>(summary.contains("checksum") && !has_changed(summary),
                           "{}: the checksum does not match: the file was changed; restore it, or resume the "
                           "run to write it again",
                           path.string());
  return summary;
}

Json summary_json(const Json& result, const std::string& run, std::uint64_t metrics_bytes,
                  const std::string& metrics_check) {
  Json summary = result;
  if (run.empty()) return summary;
  summary["run"] = run;
  summary["metrics"] = {{"bytes", metrics_bytes}, {"check", metrics_check}};
  return with_checksum(summary);
}

Json with_checksum(Json object) {
  object["checksum"] = checksum_of(object);
  return object;
}

bool has_changed(const Json& object) {
  return object.contains("checksum") && object["checksum"] != checksum_of(object);
}

namespace {

// Returns the state of the last checkpoint beside that one; its own if there is none, or if that is damaged.
RunState state_after(const SafetensorsFile& checkpoint, const RunState& state) {
  const std::optional<fs::path> last = last_checkpoint(fs::path(checkpoint.path()).parent_path());
  try {
    return last ? state_of(read_safetensors_metadata(*last), last->string()) : state;
  } catch (const CheckpointError&) {
    return state;
  }
}

// Throws unless the checkpoint holds the step that its name says, and no more steps than the run.
void require_name(const SafetensorsFile& checkpoint, const Config& trained, std::int64_t most_steps) {
  const RunState state = state_of(checkpoint.metadata(), checkpoint.path());
  const fs::path name = fs::path(checkpoint.path()).filename();
  const std::int64_t step = step_of(name);
  require<CheckpointError>(step == 0 || step == state.step,
                           "{}: holds step {}; restore the file, or rename it to {}", checkpoint.path(),
                           state.step, step_name(state.step));
  if (name == kBest) {
    const RunState last = state_after(checkpoint, state);
    const std::int64_t best = last.step >= state.step ? last.best_step : state.best_step;
    require<CheckpointError>(best == state.step, "{}: holds step {}, but the best is {}; restore the file",
                             checkpoint.path(), state.step, best);
  }
  require<CheckpointError>(name != kFinal || ending(state, trained.train),
                           "{}: holds step {}, at which training to step {} has not ended; restore the file",
                           checkpoint.path(), state.step, trained.train.steps);
  require<CheckpointError>(state.step <= most_steps,
                           "{}: holds step {}, but the run has {}; it belongs to another run, or was trained "
                           "longer: restore the file, or raise train.steps in config.yaml",
                           checkpoint.path(), state.step, most_steps);
}

// Throws if metrics.jsonl has this checkpoint's step, but not the check that the checkpoint was written with.
void require_metrics(const SafetensorsFile& checkpoint, const fs::path& run) {
  const RunState state = state_of(checkpoint.metadata(), checkpoint.path());
  const fs::path file = run / kRunMetrics;
  if (state.metrics_check.empty() || !fs::is_regular_file(file)) return;
  const std::string text = '\n' + read_file(file), step = fmt::format("\n{{\"step\":{},", state.step);
  const std::size_t begin = text.find(step), last = text.rfind(step);
  if (begin == text.npos || text.find(fmt::format("{}{}\"", kCheck, state.metrics_check)) != text.npos)
    return;
  // The best checkpoint may be ahead of the metrics after a kill, until its step is complete again.
  const bool is_complete = text.find("\n{\"step\":", last + 1) != text.npos || fs::exists(run / kRunSummary);
  require<CheckpointError>(!is_complete,
                           "{}: is of another run than {}, or one of them was changed; restore the file",
                           checkpoint.path(), file.string());
}

}  // namespace

void require_run(const SafetensorsFile& checkpoint, const fs::path& run) {
  const auto& metadata = checkpoint.metadata();
  const auto config = metadata.find("config"), data = metadata.find("data");
  require<CheckpointError>(
      config != metadata.end(),
      "{}: no config in the metadata, so it is no checkpoint of the run; open it with --weights and --config",
      checkpoint.path());
  const fs::path file = run / kRunConfig;
  const DataRecord any;  // rules that only training needs do not matter
  const Config now = parse_config(read_file(file), file.string(), {}, &any);
  const Config trained = parse_config(config->second, checkpoint.path(), {}, &any);
  std::string lines = config_differences(checkpoint, trained, now, run);
  if (data != metadata.end()) lines += data_differences(checkpoint.path(), data->second, run);
  require<ConfigError>(lines.empty(),
                       "{}: is not what {} was trained with:{}\nrestore these values, or start a new run",
                       run.string(), checkpoint.path(), lines);
  require_name(checkpoint, trained, now.train.steps);
  require_metrics(checkpoint, run);
}

void record_changes(const fs::path& run, std::int64_t step, const Config& before, const Config& now) {
  const Json values_before = to_json(before), values_now = to_json(now);
  Json changes = read_changes(run);
  const Json old = changes;
  for (const Difference& difference : differences(before, now, "", "")) {
    const auto at = pointer_of(difference.key);
    Json change{{"step", step},
                {"key", difference.key},
                {"from", values_before.value(at, Json())},
                {"to", values_now.value(at, Json())}};
    const auto same = std::ranges::find_if(changes, [&](const Json& other) {
      return other["step"] == change["step"] && other["key"] == change["key"];
    });
    if (same != changes.end()) {
      change["from"] = (*same)["from"];
      changes.erase(same);
    }
    if (change["from"] != change["to"]) changes.push_back(std::move(change));
  }
  if (changes != old) write_file(run / kRunChanges, json_text(changes, 2) + "\n");
}

}  // namespace thimble
