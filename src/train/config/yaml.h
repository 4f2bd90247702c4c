// The part of YAML that configs, sweeps and experiments use.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/source_location.h"
#include "train/config/report.h"
#include "train/files/text/text.h"

namespace thimble::config {

struct YamlNode {
  enum class Kind { empty, text, list, map };

  Kind kind = Kind::empty;
  SourceLocation location{};  // of an empty value: that of its key or list
  std::string text{};
  bool quoted = false;                     // quoted text is a name or a path, never a number
  std::vector<YamlNode> keys{}, values{};  // of a map: as many keys as values; of a list: values

  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_text() const { return kind == Kind::text; }
  bool is_filled(Kind of) const { return kind == of && !values.empty(); }
  // Returns the first value of a key of a map, or null.
  const YamlNode* find(std::string_view key) const;
};

// Returns the contents of a file. Throws ConfigError when it cannot be read, is not a regular file (a pipe,
// for example), or is larger than 1 MiB.
std::string read_config_file(const std::string& path);

// Parses the text of `source`: a file, or an argument of the command line. Reports a problem and returns
// nothing when the text is not UTF-8, has control characters or tabs in its indentation, is not valid YAML,
// nests too deeply, or has aliases or a second document. Reports tags, too.
std::optional<YamlNode> parse_yaml(const std::string& text, const SourceLocation& source, Report& report);

// Returns a short description of the node, to follow "not": "a list", "3".
std::string found(const YamlNode&);

// Returns the number that text without quotes is, or nothing.
template <class T>
std::optional<T> number_of(const YamlNode& node) {
  return node.is_text() && !node.quoted ? parse_number<T>(node.text) : std::nullopt;
}

// Calls f(key, value) for each entry of a map; reports duplicate keys and keys that are not text. `parent` is
// the path of the map, "" or "a.b.".
void for_entries(const YamlNode& map, const std::string& parent, Report& report,
                 const std::function<void(const YamlNode& key, const YamlNode& value)>& f);

// Reports that the value of `key` must follow `rule`: "must be RULE, not VALUE".
void must_be(const YamlNode& node, const std::string& key, std::string_view rule, Report& report);

// Returns whether the value of `key` is a map that is not empty; reports one that is not, and keys other than `keys`.
bool check_map(const YamlNode& map, const std::string& key, std::span<const std::string_view> keys,
               Report& report, const std::string& parent = "");

// Reports a key that is not one of `keys`.
void unknown_key(const YamlNode& key, std::span<const std::string_view> keys, Report& report);

}  // namespace thimble::config
