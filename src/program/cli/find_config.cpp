#include "program/cli/find_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "thimble/engine/error.h"
#include "train/config/yaml.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

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

void require_config(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  const std::string extension = fs::path(path).extension();
  const bool is_yaml = extension == ".yaml" || extension == ".yml";
  std::string text;
  std::optional<config::YamlNode> node;
  try {
    config::Report problems(path);
    text = config::read_config_file(path);
    node = config::parse_yaml(text, {.source = path}, problems);
  } catch (const ConfigError&) {  // of a config, its reader reports it
  }
  const auto has = [&](const char* key) { return node && node->find(key) != nullptr; };
  const auto refuse = [&](std::string_view what, std::string_view use,
                          const std::vector<std::string>& words) {
    throw ConfigError(
        fmt::format("{}: is {}, not a config; {}: {}", printable(path), what, use, shell_command(words)));
  };
  if (has("statement") && has("runs"))
    refuse(
        "an experiment", "run it",
        {"thimble", "reproduce", fs::path(path).stem(), "--experiments", fs::absolute(path).parent_path()});
  if (has("config") && !has("task")) refuse("a sweep", "run it", {"thimble", "sweep", path});
  constexpr const char* kSections[] = {"base", "task", "data", "model", "train"};
  if (is_yaml || std::ranges::any_of(kSections, has)) return;
  if (extension.empty() && (!node || !node->is_text())) return;
  constexpr std::string_view kTexts[] = {"", ".txt", ".text", ".md"};
  const bool pairs = std::ranges::find(kTexts, extension) == std::end(kTexts) ||
                     text.substr(0, text.find('\n')).find('\t') != text.npos;
  refuse("data", "train a model on it",
         {"thimble", "train", pairs ? "own_data" : "names", "task.file=" + path});
}

}  // namespace thimble::cli
