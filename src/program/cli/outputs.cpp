#include "program/cli/outputs.h"

#include <algorithm>

#include "program/cli/print.h"
#include "program/sweep/sweep_runs.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/run_directory.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace fs = std::filesystem;

namespace {

std::vector<NamedPath> declared;

// Returns the path without links and dots; its last parts need not exist.
fs::path resolved(const fs::path& path) { return fs::weakly_canonical(followed(fs::absolute(path))); }

// Returns whether a sweep writes that file. Its runs are named after their settings.
bool is_of_sweep(const fs::path& file) {
  constexpr std::string_view kNames[] = {"sweep.json", "slurm.json", "slurm.sh", "runs"};
  const std::string name = file.filename(), folder = file.parent_path();
  return folder == "runs" ||
         (folder.empty() && (std::ranges::find(kNames, name) != std::end(kNames) || name.ends_with(".tmp")));
}

// The directory of a run or of a sweep.
struct Owner {
  fs::path directory;
  bool sweeps;

  bool writes(const fs::path& file) const {
    const fs::path relative = file.lexically_relative(directory);
    return sweeps ? is_of_sweep(relative) : RunDirectory::has_name(relative);
  }
};

// Returns the runs and sweeps that could have a file of that path: those that the command names, and those that
// the path lies in.
std::vector<Owner> owners_of(const fs::path& path, const std::vector<NamedPath>& directories) {
  std::vector<Owner> owners;
  for (const NamedPath& directory : directories)
    if (!directory.path.empty() && directory.kind != Value::directory)
      owners.push_back({resolved(directory.path), directory.kind == Value::new_sweep});
  const fs::path folder = path.parent_path();
  for (const fs::path& directory : {folder, folder.parent_path()})
    for (const bool sweeps : {false, true})
      if (const Owner owner{directory, sweeps};
          owner.writes(path) && (sweeps ? is_sweep(directory) : RunDirectory(directory).is_run()))
        owners.push_back(owner);
  return owners;
}

}  // namespace

void declare_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& directories) {
  declared.clear();
  for (const NamedPath& output : outputs) {
    if (output.path.empty()) continue;
    declared.push_back(output);
    if (output.path == "-") continue;
    const fs::path path = resolved(output.path);
    const auto require_other = [&](const NamedPath& other) {
      require<ConfigError>(other.path.empty() || is_stream(path) || resolved(other.path) != path,
                           "{} {}: is the {} of {}, too; choose another", output.option,
                           printable(output.path), other.kind == Value::file ? "file" : "directory",
                           other.option);
    };
    std::for_each(declared.begin(), declared.end() - 1, require_other);
    for (const NamedPath& directory : directories)
      if (directory.kind != Value::run) require_other(directory);
    for (const Owner& owner : owners_of(path, directories))
      require<ConfigError>(!owner.writes(path), "{} {}: is a file of the {} {}; choose another file",
                           output.option, printable(output.path), owner.sweeps ? "sweep" : "run",
                           owner.directory.string());
  }
}

void require_no_outputs(const std::vector<std::string>& inputs) {
  std::error_code none;
  for (const NamedPath& output : declared)
    for (const std::string& input : inputs)
      require<ConfigError>(
          !fs::equivalent(output.path, input, none),
          "{} {}: is an input of this command, which the result would replace; choose another file",
          output.option, printable(output.path));
}

void require_no_outputs(const std::vector<DataFile>& inputs) {
  for (const DataFile& file : inputs) require_no_outputs(std::vector{file.path, file.moved});
}

void require_no_outputs(const OpenConfig& config) {
  require_no_outputs(config.files);
  if (config.source != nullptr) require_no_outputs(config.source->files());
}

bool standard_output_is_taken() {
  return std::ranges::any_of(declared, [](const NamedPath& output) { return output.path == "-"; });
}

void write_result(const std::string& path, std::string_view text) {
  if (path == "-")
    write_text(text);
  else
    write_output(path, text);
}

}  // namespace thimble::cli
