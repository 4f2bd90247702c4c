// Changes to configs in sweeps and experiments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "thimble/train/config.h"
#include "train/config/yaml.h"

namespace thimble::config {

// A key of a config and the value that it is set to.
struct Change {
  std::string key, text;                  // text: "key=value"
  SourceLocation key_location, location;  // location: of the value
};
using Changes = std::vector<Change>;

// Returns "key=value" for each change.
std::vector<std::string> texts(const Changes& changes);

// A reader of changes in a sweep or experiment, the first file of the report, which also opens configs with
// them. Every problem is reported where its value was written.
class ChangeReader {
 public:
  explicit ChangeReader(Report& report);

  // Returns the path of a config, relative to the current folder; "" when the node has none.
  std::string read_config(const YamlNode& node);
  // Appends the change in an entry of a map.
  void read_change(const YamlNode& key, const YamlNode& value, Changes& changes);
  // Returns the changes in a map, the value of `key`; reports anything else with the rule of must_be().
  Changes read_changes(const YamlNode& map, const std::string& key, std::string_view rule);
  // Appends the seeds in a list; reports duplicates.
  void read_seeds(const YamlNode& node, std::vector<std::uint64_t>& seeds);

  // Reports a change to a key that the sweep or experiment sets itself: threads, and the seed if it lists
  // seeds.
  void check_change(const Change& change, bool has_seeds);

  // Returns the config with the changes, as open_config does; nothing if it has problems. Problems of the
  // config file itself are reported at `file_location`, where it is named; each problem is reported once.
  std::optional<OpenConfig> load(const std::string& file, const SourceLocation& file_location,
                                 const Changes& changes);

 private:
  void report_once(const SourceLocation& location, const std::string& key, const std::string& rule);

  Report& report_;
  std::filesystem::path folder_;            // of the file
  std::set<std::string> keys_, path_keys_;  // of a config
  std::set<std::tuple<int, int, int, std::string>> reported_;
  std::vector<OpenConfig> opened_;  // with different sources, which later configs share
};

}  // namespace thimble::config
