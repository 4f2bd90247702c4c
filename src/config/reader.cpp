#include "config/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "config/nearest.h"
#include "config/text.h"
#include "config/value.h"
#include "config/yaml.h"
#include "thimble/core/error.h"
#include "thimble/core/nearest.h"
#include "thimble/core/text.h"

namespace thimble::config {

namespace fs = std::filesystem;

namespace {

// What to say about a dotted path that is none.
std::string unknown_key(const std::string& path, const Section& root, Report& report) {
  const std::size_t dot = path.rfind('.') + 1;  // 0 without a dot
  const std::string parent = path.substr(0, dot), key = path.substr(dot);
  if (const std::string_view text = advice(key); !text.empty()) return fmt::format("unknown key; {}", text);
  const std::string meant = nearest_path(parent, key, flatten(root));
  if (!meant.empty()) {
    report.distrust(meant);
    return meant == path ? "unknown key; write it as nested maps, without dots"
                         : fmt::format("unknown key, did you mean {}?", meant);
  }

  const Section* section = &root;  // the innermost that the path names
  for (std::size_t start = 0, end = 0; (end = path.find('.', start)) != std::string::npos; start = end + 1) {
    const Field* field = section->find(path.substr(start, end - start));
    if (field == nullptr || field->section() == nullptr) break;
    section = field->section();
  }
  return fmt::format("unknown key, must be one of {}", fmt::join(keys(*section), ", "));
}

// Returns "[1, 2]" for 1,2 or [1,2] if both were values of the field; or "".
std::string as_list(std::string_view text, const Field& field) {
  if (field.section() != nullptr || std::holds_alternative<Path>(field.kind)) return "";
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> values;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    std::string& value = values.emplace_back(text.substr(start, end - start));
    value.erase(0, value.find_first_not_of(' '));
    if (value.empty()) return "";
    start = end + 1;
  }
  return values.size() < 2 ? "" : fmt::format("[{}]", fmt::join(values, ", "));
}

// Reads one file, or the command line.
class Reader {
 public:
  // Relative paths start at `folder`.
  Reader(int file, std::string folder, const Section& root, Report& report)
      : file_(file), folder_(std::move(folder)), root_(root), report_(report) {}

  // The map `node` as the section whose path is `parent`, "" or "a.b.".
  void read_map(const YAML::Node& node, const Section& section, const std::string& parent) {
    std::map<std::string, int> lines;  // of the keys so far
    for (const auto& entry : node) {
      const Place place = place_of(entry.first.Mark(), file_);
      if (!entry.first.IsScalar()) {
        report_.problem(place, parent + "?", fmt::format("a key must be a name, not {}", found(entry.first)));
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const auto [first, is_new] = lines.emplace(key, place.line);
      if (!is_new)
        report_.problem(place, parent + key, fmt::format("repeated key, first on line {}", first->second));
      else if (const Field* field = section.find(key))
        read_value(entry.second, *field, parent + key, place);
      else
        report_.problem(place, parent + key, unknown_key(parent + key, root_, report_));
    }
  }

  void read_value(const YAML::Node& node, const Field& field, const std::string& key,
                  const Place& key_place) {
    // yaml-cpp places a missing value after the next line break.
    const bool key_is_nearer = key_place.argument > 0 || node.IsNull();
    const Place place = key_is_nearer ? key_place : place_of(node.Mark(), file_);
    report_.given(key, place);
    if (const std::string& tag = node.Tag(); tag.size() > 1)
      return report_.problem(place, key, fmt::format("tag {}; write the plain value", tag));

    if (const Section* section = field.section(); section != nullptr && node.IsMap())
      return read_map(node, *section, key + ".");
    if (node.IsScalar() && assign(field, node.Scalar(), node.Tag() == "!", folder_)) return;
    std::string rule = fmt::format("must be {}, not {}", expectation(field), found(node));
    if (const auto* choice = std::get_if<Choice>(&field.kind); choice != nullptr && node.IsScalar())
      if (const auto meant = nearest_name(node.Scalar(), choice->names); !meant.empty())
        rule += fmt::format("; did you mean {}?", meant);
    report_.problem(place, key, rule);
  }

 private:
  int file_;
  std::string folder_;
  const Section& root_;
  Report& report_;
};

fs::path folder_of(int file, const Report& report) { return fs::path(report.file_name(file)).parent_path(); }

// The map that a file consists of, or none if it is none, which is then reported.
std::optional<YAML::Node> parse_map(const std::string& text, int file, const Section& root, Report& report) {
  std::optional<YAML::Node> node = parse_yaml(text, file, report);
  if (!node || node->IsMap()) return node;
  const std::string map = expectation({"", "", root});
  if (node->IsNull())
    report.problem({.file = file}, "", fmt::format("the file is empty; a config is {}", map));
  else
    report.problem(place_of(node->Mark(), file), "", fmt::format("must be {}, not {}", map, found(*node)));
  return std::nullopt;
}

// The text of the file that this one builds on, which becomes the next of the report, or none.
std::optional<std::string> read_base(const YAML::Node& map, int file, const Section& root, Report& report) {
  constexpr int kMostFiles = 8;
  const auto is_base = [&](const auto& entry) {
    const Field* field = entry.first.IsScalar() ? root.find(entry.first.Scalar()) : nullptr;
    return field != nullptr && std::holds_alternative<Base>(field->kind) && entry.second.IsScalar() &&
           assign(*field, entry.second.Scalar(), false, "");
  };
  const auto entry = std::find_if(map.begin(), map.end(), is_base);
  if (entry == map.end()) return std::nullopt;
  const std::string name = (folder_of(file, report) / entry->second.Scalar()).lexically_normal().string();

  std::string wrong;
  std::error_code ignored;
  for (int i = 0; i <= file; ++i)
    if (fs::equivalent(name, report.file_name(i), ignored))
      wrong = fmt::format("{} would build on itself", name);
  if (file + 1 == kMostFiles) wrong = fmt::format("more than {} files that build on each other", kMostFiles);
  try {
    if (wrong.empty()) {
      std::string text = read_file(name);
      report.add_file(name);
      return text;
    }
  } catch (const ConfigError& e) {
    wrong = e.what();
  }
  report.problem(place_of(entry->second.Mark(), file), entry->first.Scalar(), wrong);
  report.distrust("");  // who knows what the base would have said
  return std::nullopt;
}

}  // namespace

void read_yaml(const std::string& text, const Section& root, Report& report) {
  std::vector<YAML::Node> maps;  // one a file, each followed by what it builds on
  std::optional<std::string> next = text;
  while (next) {
    const int file = static_cast<int>(maps.size());
    const std::optional<YAML::Node> map = parse_map(*next, file, root, report);
    if (!map) break;
    maps.push_back(*map);
    next = read_base(*map, file, root, report);
  }
  for (int file = static_cast<int>(maps.size()) - 1; file >= 0; --file)
    Reader(file, folder_of(file, report).string(), root, report)
        .read_map(maps[static_cast<std::size_t>(file)], root, "");
}

void read_override(const std::string& argument, int number, const Section& root, Report& report) {
  const Place place{.argument = number, .argument_text = argument};
  if (!is_line(argument)) return report.problem(place, "", "must be UTF-8 without control characters");
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return report.problem(place, argument, "must be key=value");
  const std::string path = argument.substr(0, equals);

  const std::vector<Named> all = flatten(root);
  const auto named = std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.path == path; });
  if (named == all.end()) {
    const bool list = argument.find(',', equals) != std::string::npos;
    return report.problem(
        place, path,
        unknown_key(path, root, report) + (list ? " It takes one value; thimble sweep tries several." : ""));
  }
  if (std::holds_alternative<Base>(named->field->kind))
    return report.problem(place, path, "belongs into a config file");
  if (const Section* section = named->field->section())
    return report.problem(
        place, path,
        fmt::format("a section; set its keys one by one, as in {}.{}=VALUE", path, section->fields[0].key));
  const std::string value = argument.substr(equals + 1);
  if (const std::string list = as_list(value, *named->field); !list.empty())
    return report.problem(
        place, path,
        fmt::format("takes one value; thimble sweep tries several, with grid: {{{}: {}}} in "
                    "its file",
                    path, list));
  try {
    Reader(0, "", root, report).read_value(YAML::Load(value), *named->field, path, place);
  } catch (const YAML::Exception& e) {
    report.problem(place, path, fmt::format("not a YAML value: {}", e.msg));
  }
}

}  // namespace thimble::config
