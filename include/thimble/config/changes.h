// Changes to configs, as sweeps and experiments make them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "thimble/config/config.h"
#include "thimble/config/yaml.h"

namespace thimble::config {

// A value that a config gets.
struct Change {
  std::string key, text;                  // text: "key=value"
  SourceLocation key_location, location;  // location: of the value
};
using Changes = std::vector<Change>;

std::vector<std::string> texts(const Changes& changes);

// Reads changes from a sweep or an experiment, the first file of the report, and loads configs with them.
// Reports what is wrong where it was written.
class ChangeReader {
 public:
  explicit ChangeReader(Report& report);

  // Returns the path of a config, from the current folder; "" when the node is none.
  std::string read_config(const YamlNode& node);
  // Appends the change that an entry of a map makes.
  void read_change(const YamlNode& key, const YamlNode& value, Changes& changes);
  void read_seeds(const YamlNode& node, std::vector<std::uint64_t>& seeds);

  // Reports a change to what each run has from elsewhere: threads, and the seed if the file lists seeds.
  void check_change(const Change& change, bool has_seeds);

  // Returns the config with the changes; nothing if it was refused. The problems of the file itself are
  // reported at `file_location`, where it is named, and each problem once.
  std::optional<Config> load(const std::string& file, const SourceLocation& file_location,
                             const Changes& changes);

 private:
  void report_once(const SourceLocation& location, const std::string& key, const std::string& rule);

  Report& report_;
  std::filesystem::path folder_;            // of the file
  std::set<std::string> keys_, path_keys_;  // of a config
  std::set<std::tuple<int, int, int, std::string>> reported_;
};

}  // namespace thimble::config
