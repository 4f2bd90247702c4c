#include "program/cli/find_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "thimble/engine/error.h"
#include "train/files/text/suggest.h"

namespace thimble::cli {

namespace fs = std::filesystem;

std::vector<fs::path> config_folders() {
  std::vector<fs::path> folders = {"configs"};
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return folders;
  const fs::path above = program.parent_path().parent_path();
  folders.push_back(above.parent_path() / "configs");  // for build/release/thimble
  folders.push_back(above / "share/thimble/configs");  // for bin/thimble
  return folders;
}

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (const fs::path& folder : config_folders()) {
    std::error_code failed;
    for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed))
      if (entry->path().extension() == ".yaml")
        names.push_back(entry->path().lexically_relative(folder).replace_extension().string());
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string find_config(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored) || fs::path(name).has_extension() || fs::path(name).is_absolute())
    return name;
  std::vector<std::string> searched;
  for (const fs::path& folder : config_folders()) {
    const fs::path path = folder / (name + ".yaml");
    if (fs::exists(path, ignored)) return path.string();
    searched.push_back(path.string());
  }
  throw ConfigError(fmt::format("{}: no such config{}; searched {}, {}", name,
                                did_you_mean(name, config_names()), name, fmt::join(searched, ", ")));
}

}  // namespace thimble::cli
