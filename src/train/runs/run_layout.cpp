#include "train/runs/run_layout.h"

#include <algorithm>
#include <charconv>
#include <optional>

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
                       line.value("split", Json()).is_string();
    return valid ? line : Json();
  } catch (const Json::exception&) {
    return nullptr;
  }
}

Fit fit(const MetricsMark& stated, const std::optional<MetricsMark>& found) {
  if (stated.lines == 0) return Fit::whole;
  if (!found) return Fit::missing;
  return *found == stated ? Fit::whole : Fit::differs;
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

fs::path unused_name(const fs::path& name) {
  fs::path free = name;
  for (int n = 2; fs::exists(fs::symlink_status(free)); ++n) free = fmt::format("{}-{}", name.string(), n);
  return free;
}

MetricsScan scan_metrics(const fs::path& file, const MetricsMark& checkpoint, const MetricsMark& end,
                         const std::function<void(const Json& line)>& f) {
  MetricsScan scan;
  if (!fs::exists(fs::symlink_status(file))) {
    scan.checkpoint = fit(checkpoint, {});
    scan.end = fit(end, {});
    return scan;
  }
  const InputFile input(file);
  LineReader reader(input);
  ProgressCounter progress("reading metrics", static_cast<double>(reader.total()));
  MetricsMark mark;
  std::optional<MetricsMark> at_checkpoint, at_end;
  std::string_view text;
  scan.exists = true;
  for (std::size_t number = 1; reader.next(text); ++number) {
    progress.advance(static_cast<double>(reader.size() + 1));
    if (text.find_first_not_of(" \t") == text.npos) continue;
    const Json line = metrics_line(text);
    const bool valid = !line.is_null();
    if (!valid && !reader.is_complete()) break;  // after a kill, or during training
    if (!valid && scan.invalid == 0) scan.invalid = number;
    if (++scan.lines == 1 && valid) {
      scan.first_step = line["step"].get<std::int64_t>();
      scan.run = line.value("run", Json()).is_string() ? line["run"].get<std::string>() : "";
    }
    mark.add(valid ? line : Json{{"text", text}});
    if (mark.lines == checkpoint.lines) {
      at_checkpoint = mark;
      scan.bytes = reader.offset();
      scan.ends_in_line = reader.is_complete();
    }
    if (mark.lines == end.lines) at_end = mark;
    if (valid) f(line);
  }
  scan.checkpoint = fit(checkpoint, at_checkpoint);
  scan.end = fit(end, at_end);
  return scan;
}

}  // namespace thimble
