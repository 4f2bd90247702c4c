#include "train/runs/run_layout.h"

#include <algorithm>
#include <charconv>

#include "thimble/train/run_directory.h"
#include "thimble/train/safetensors.h"
#include "train/files/line_reader.h"
#include "train/files/progress.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Returns the object of a line; null if it is no object of step and split.
Json metrics_line(std::string_view text) {
  try {
    Json line = parse_json(text);
    const bool valid = line.is_object() && line.value("step", Json()).is_number_integer() &&
                       line["step"] >= 0 && line.value("split", Json()).is_string();
    return valid ? line : Json();
  } catch (const Json::exception&) {
    return nullptr;
  }
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("step-{}.safetensors", step); }

std::int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  std::int64_t step = 0;
  if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return name == step_name(step) ? step : 0;
}

std::vector<fs::path> step_files(const fs::path& run) {
  std::vector<fs::path> found;
  if (!fs::is_directory(run / kRunCheckpoints)) return found;
  for (const auto& entry : fs::directory_iterator(run / kRunCheckpoints))
    if (step_of(entry.path()) > 0) found.push_back(entry.path());
  std::ranges::sort(found, std::greater(), step_of);
  return found;
}

std::vector<fs::path> checkpoint_files(const fs::path& run) {
  const fs::path folder = run / kRunCheckpoints;
  std::vector<fs::path> found = step_files(run);
  if (fs::exists(folder / kFinal)) found.insert(found.begin(), folder / kFinal);
  if (fs::exists(folder / kBest)) found.push_back(folder / kBest);
  return found;
}

std::string checkpoint_names(const fs::path& run, const fs::path& but) {
  std::vector<std::string> names;
  for (const fs::path& path : checkpoint_files(run)) {
    const std::int64_t step = step_of(path);
    if (path != but) names.push_back(step > 0 ? std::to_string(step) : path.stem().string());
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

fs::path unused_name(const fs::path& name) {
  fs::path free = name;
  for (int n = 2; fs::exists(fs::symlink_status(free)); ++n) free = fmt::format("{}-{}", name.string(), n);
  return free;
}

RunState header_state(const fs::path& path) {
  try {
    return run_state(parse_json(read_safetensors_metadata(InputFile(path), path.string()).at("state")));
  } catch (const std::exception&) {
    return {};
  }
}

std::string other_best(const fs::path& best, const RunState& found, const RunState& newest) {
  if (found.step == newest.best_step || found.step > newest.step) return "";
  return fmt::format("{}: holds step {}, but the best of the run is step {}; restore the file", best.string(),
                     found.step, newest.best_step);
}

std::string MetricsLine::run() const {
  const Json name = values.is_object() ? values.value("run", Json()) : Json();
  return name.is_string() ? name.get<std::string>() : "";
}

std::string read_lines(const fs::path& file, const std::function<bool(const MetricsLine&)>& f) {
  const InputFile input(file);
  LineReader reader(input);
  ProgressCounter progress("reading metrics", static_cast<double>(reader.total()));
  std::string_view text;
  MetricsLine line;
  while (reader.next(text)) {
    progress.advance(static_cast<double>(reader.size() + 1));
    ++line.number;
    if (text.find_first_not_of(" \t") == text.npos) continue;
    line.values = metrics_line(text);
    line.end = reader.offset();
    line.is_whole = reader.is_complete();
    if (line.values.is_null() && !line.is_whole)
      return std::string(text);  // after a kill, or during training
    if (!f(line)) break;
  }
  return "";
}

Json object_in(const fs::path& summary) {
  try {
    const Json json = read_json(summary);
    return json.is_object() ? json : Json::object();
  } catch (const std::exception&) {
    return Json::object();
  }
}

std::int64_t RunDirectory::last_step() const {
  constexpr std::uint64_t kEnd = 1 << 16;
  const fs::path metrics = path_ / kRunMetrics;
  if (!fs::exists(metrics)) return 0;
  const InputFile file(metrics);
  const std::string text = file.read(file.size() - std::min(file.size(), kEnd), kEnd);
  const std::size_t end = text.rfind('\n');
  const std::size_t start = end == std::string::npos ? end : text.rfind(kMetricsStart, end);
  std::int64_t step = 0;
  if (start != std::string::npos)
    std::from_chars(text.data() + start + kMetricsStart.size(), text.data() + end, step);
  return step;
}

}  // namespace thimble
