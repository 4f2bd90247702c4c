// Configs with changes that a sweep or an experiment makes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/map_reader.h"
#include "thimble/config/config.h"

namespace thimble::config {

std::vector<std::string> texts(const Changes& changes);

// Loads configs, and reports what is wrong with them where the changes were made, each problem once.
class SettingLoader {
 public:
  explicit SettingLoader(Report& report);

  // None if it was refused. The file's own problems are placed where it was named.
  std::optional<Config> load(const std::string& file, const Place& file_place, const Changes& changes);

 private:
  void refused(const std::string& line, const Place& file_place, const Changes& changes);
  void tell(const Place& place, const std::string& key, const std::string& rule);

  Report& report_;
  std::set<std::string> keys_, told_;  // keys_: of configs
};

}  // namespace thimble::config
