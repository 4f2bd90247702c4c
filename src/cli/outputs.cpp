#include "cli/outputs.h"

#include <algorithm>
#include <filesystem>

#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/text.h"

namespace thimble::cli {

namespace fs = std::filesystem;

namespace {

std::vector<NamedPath> declared;

// Returns the path without links and dots; its last parts need not exist.
fs::path resolved(const fs::path& path) { return fs::weakly_canonical(followed(fs::absolute(path))); }

bool is_run(const fs::path& directory) {
  return fs::exists(directory / "config.yaml") && fs::is_directory(directory / "checkpoints");
}

bool is_sweep(const fs::path& directory) {
  return fs::exists(directory / "sweep.json") && fs::is_directory(directory / "runs");
}

// Returns whether thimble writes a file of that name to a run or sweep directory.
bool is_taken(const std::string& name) {
  constexpr std::string_view kNames[] = {"config.yaml",  "data.json",   "metrics.jsonl", "changes.json",
                                         "summary.json", "checkpoints", ".lock",         "sweep.json",
                                         "slurm.json",   "slurm.sh",    "runs"};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.ends_with(".tmp");
}

// Returns whether the path is another name of a file in the directory or its checkpoints.
bool is_in(const fs::path& path, const fs::path& directory) {
  std::error_code error;
  for (const fs::path& folder : {directory, directory / "checkpoints"})
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (fs::equivalent(path, entry.path(), error) &&
          (folder != directory || is_taken(entry.path().filename())))
        return true;
  return false;
}

}  // namespace

void declare_outputs(const std::vector<NamedPath>& outputs, const std::vector<std::string>& directories) {
  declared.clear();
  for (const NamedPath& output : outputs) {
    if (output.path.empty() || output.path == "-") continue;
    const fs::path path = resolved(output.path), folder = path.parent_path(), above = folder.parent_path();
    const auto is_own = [&](const fs::path& place) {
      return std::ranges::any_of(directories, [&](const std::string& directory) {
        return !directory.empty() && resolved(directory) == place;
      });
    };
    const auto has_name = [&](const std::string& directory) { return is_in(path, directory); };
    const bool taken =
        (fs::exists(path) && std::ranges::any_of(directories, has_name)) || is_own(path) ||
        ((is_own(folder) || is_run(folder) || is_sweep(folder)) && is_taken(path.filename())) ||
        (folder.filename() == "checkpoints" && (is_run(above) || is_own(above))) ||
        (folder.filename() == "runs" && (is_sweep(above) || is_own(above)));
    require<ConfigError>(!taken,
                         "{} {}: thimble uses this name in a run or sweep directory; choose another file",
                         output.option, printable(output.path));
    for (const NamedPath& other : declared)
      require<ConfigError>(resolved(other.path) != path, "{} {}: is the file of {}, too; choose another",
                           output.option, printable(output.path), other.option);
    declared.push_back(output);
  }
}

void require_separate_outputs() {
  for (const NamedPath& output : declared)
    require<ConfigError>(
        !is_known(output.path),
        "{} {}: is an input of this command, which the result would replace; choose another file",
        output.option, printable(output.path));
}

}  // namespace thimble::cli
