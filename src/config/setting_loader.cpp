#include "config/setting_loader.h"

#include <sstream>

#include "config/fields.h"
#include "thimble/core/error.h"

namespace thimble::config {

std::vector<std::string> texts(const Changes& changes) {
  std::vector<std::string> out;
  for (const Change& change : changes) out.push_back(change.text);
  return out;
}

SettingLoader::SettingLoader(Report& report) : report_(report) {
  Config config;
  const Section root = describe(config);
  for (const Named& named : flatten(root)) keys_.insert(named.path);
}

std::optional<Config> SettingLoader::load(const std::string& file, const Place& file_place,
                                          const Changes& changes) {
  try {
    return load_config(file, texts(changes));
  } catch (const ConfigError& e) {
    std::istringstream lines(e.what());
    std::string line, summary;
    std::getline(lines, summary);
    if (lines.eof()) refused(summary, file_place, changes);  // the file cannot be read
    while (std::getline(lines, line)) refused(line, file_place, changes);
  }
  return std::nullopt;
}

// A line of what load_config throws, placed where the file, and not an argument, made the change.
void SettingLoader::refused(const std::string& line, const Place& file_place, const Changes& changes) {
  for (const Change& change : changes) {
    const std::string prefix = fmt::format("command line: {}: ", change.text);
    if (!line.starts_with(prefix)) continue;
    const std::string rule = line.substr(prefix.size());
    return keys_.contains(change.key) ? tell(change.place, change.text, rule)
                                      : tell(change.key_place, change.key, rule);
  }
  tell(file_place, "config", line);
}

void SettingLoader::tell(const Place& place, const std::string& key, const std::string& rule) {
  if (told_.insert(fmt::format("{}:{}:{}:{}:{}", place.argument, place.line, place.column, key, rule)).second)
    report_.problem(place, key, rule);
}

}  // namespace thimble::config
