#include "train/config/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "thimble/engine/error.h"
#include "train/config/suggest.h"
#include "train/config/value.h"
#include "train/config/yaml.h"
#include "train/files/text/suggest.h"

namespace thimble::config {

namespace fs = std::filesystem;

namespace {

// Returns the message about a dotted path that is no key.
std::string unknown_path(const std::string& path, const Section& root, Report& report) {
  const std::size_t dot = path.rfind('.') + 1;  // 0 without a dot
  const std::string parent = path.substr(0, dot), key = path.substr(dot);
  if (const std::string_view text = advice(key); !text.empty()) return fmt::format("unknown key; {}", text);
  const std::string meant = nearest_path(parent, key, flatten(root));
  if (!meant.empty()) {
    report.suppress(meant);
    return meant == path ? "unknown key; nest maps in a file, instead of dots"
                         : fmt::format("unknown key, did you mean {}?", meant);
  }

  const Section* section = &root;  // the innermost section on the path
  for (const auto& [outer, field] : flatten(root))
    if (field->section() != nullptr && path.starts_with(outer + '.')) section = field->section();
  return fmt::format("unknown key; must be one of {}", fmt::join(keys(*section), ", "));
}

// Returns "[1, 2]" for 1,2 or [1,2]; "" for anything but a list of several values.
std::string as_list(const std::string& text) {
  Report ignored("");
  const auto list = parse_yaml(text.starts_with('[') ? text : '[' + text + ']', {}, ignored);
  if (!list || list->values.size() < 2) return "";
  std::vector<std::string> values;
  for (const YamlNode& value : list->values) values.push_back(value.text);
  return fmt::format("[{}]", fmt::join(values, ", "));
}

// Reads files and the command line into the variables of a config.
class Reader {
 public:
  // Relative paths start at `folder`.
  Reader(std::string folder, const Section& root, Report& report)
      : folder_(std::move(folder)), root_(root), report_(report) {}

  // Reads a map as the section whose path is `parent`, "" or "a.b.".
  void read_section(const YamlNode& map, const Section& section, const std::string& parent) {
    for_entries(map, parent, report_, [&](const YamlNode& key, const YamlNode& value) {
      const std::string path = parent + key.text;
      if (const Field* field = section.find(key.text))
        read_value(value, *field, path);
      else
        report_.problem(key.location, path, unknown_path(path, root_, report_));
    });
  }

  void read_value(const YamlNode& node, const Field& field, const std::string& key) {
    report_.given(key, node.location);
    if (const Section* section = field.section(); section != nullptr && node.is_map())
      return read_section(node, *section, key + ".");
    if (node.is_text() && assign(field, node.text, node.quoted, folder_)) return;
    std::string rule = fmt::format("must be {}, not {}", expectation(field), found(node));
    if (const auto* choice = std::get_if<Choice>(&field.kind); choice != nullptr && node.is_text())
      rule += did_you_mean(node.text, choice->names);
    if (const auto* integer = std::get_if<Integer>(&field.kind))
      rule += did_you_mean(node.text, integer->low, integer->high);
    report_.problem(node.location, key, rule);
  }

 private:
  std::string folder_;
  const Section& root_;
  Report& report_;
};

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().string(); }

// Returns the map that the last file of the report consists of; reports anything else.
std::optional<YamlNode> parse_map(const std::string& text, const Section& root, Report& report) {
  std::optional<YamlNode> node = parse_yaml(text, {.source = report.files().back()}, report);
  if (!node || node->is_map()) return node;
  const std::string map = expectation({"", "", root});
  report.problem(node->location, "",
                 node->is_text() || node->is_list() ? fmt::format("must be {}, not {}", map, found(*node))
                                                    : fmt::format("the file is empty; it must be {}", map));
  return std::nullopt;
}

// Adds the file that the last one of the report builds on to the report and returns its text; or nothing.
std::optional<std::string> read_base(const YamlNode& map, const Section& root, Report& report) {
  constexpr std::size_t kMaxFiles = 8;
  const auto is_base = [&](const YamlNode& key, const YamlNode& value) {
    const Field* field = root.find(key.text);
    return field != nullptr && std::holds_alternative<Base>(field->kind) && value.is_text() &&
           assign(*field, value.text, false, "");
  };
  std::size_t i = 0;
  while (i < map.keys.size() && !is_base(map.keys[i], map.values[i])) ++i;
  if (i == map.keys.size()) return std::nullopt;
  const std::vector<std::string>& files = report.files();
  const std::string name =
      (folder_of(files.back()) / fs::path(map.values[i].text)).lexically_normal().string();

  std::string wrong;
  std::error_code ignored;
  if (std::ranges::any_of(files,
                          [&](const std::string& file) { return fs::equivalent(name, file, ignored); }))
    wrong = fmt::format("circular base: {} builds on itself", name);
  if (files.size() == kMaxFiles)
    wrong = fmt::format("more than {} files build on each other; merge some", kMaxFiles);
  try {
    if (wrong.empty()) {
      std::string text = read_config_file(name);
      report.add_file(name);
      return text;
    }
  } catch (const ConfigError& e) {
    wrong = e.what();
  }
  report.problem(map.values[i].location, map.keys[i].text, wrong);
  report.suppress("");  // the base may have set anything
  return std::nullopt;
}

}  // namespace

void read_yaml(const std::string& text, const Section& root, Report& report) {
  std::vector<YamlNode> maps;  // of each file, followed by that of the file it builds on
  std::optional<std::string> next = text;
  while (next) {
    std::optional<YamlNode> map = parse_map(*next, root, report);
    if (!map) break;
    next = read_base(*map, root, report);
    maps.push_back(*std::move(map));
  }
  for (std::size_t file = maps.size(); file-- > 0;)
    Reader(folder_of(report.files()[file]), root, report).read_section(maps[file], root, "");
}

void read_override(const std::string& argument, int number, const Section& root, Report& report) {
  const SourceLocation location{.source = argument, .argument = number};
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return report.problem(location, argument, "must be key=value");
  const std::string path = argument.substr(0, equals), value = argument.substr(equals + 1);

  const std::vector<Named> all = flatten(root);
  const auto named = std::ranges::find(all, path, &Named::path);
  if (named == all.end()) {
    const bool list = value.find(',') != std::string::npos;
    return report.problem(
        location, path,
        unknown_path(path, root, report) + (list ? " To try several values, run thimble sweep." : ""));
  }
  if (std::holds_alternative<Base>(named->field->kind))
    return report.problem(location, path, "can only be set in a config file");
  if (const Section* section = named->field->section())
    return report.problem(
        location, path,
        fmt::format("is a section; set its keys one by one: {}.{}=VALUE", path, section->fields[0].key));
  const bool quoted =
      value.size() > 1 && value.front() == value.back() && (value[0] == '"' || value[0] == '\'');
  const auto& kind = named->field->kind;
  if (!quoted && (std::holds_alternative<Text>(kind) || std::holds_alternative<Path>(kind))) {
    const YamlNode raw{.kind = YamlNode::Kind::text, .location = location, .text = value};
    return Reader("", root, report).read_value(raw, *named->field, path);
  }
  if (value.find_first_of("\r\n") != value.npos) return report.problem(location, "", "must be one line");
  const auto* choice = std::get_if<Choice>(&kind);
  const bool is_list = choice != nullptr && choice->is_list;
  if (const std::string list = is_list ? "" : as_list(value); !list.empty())
    return report.problem(
        location, path,
        fmt::format("takes one value; to try several, run thimble sweep with grid: {{{}: {}}}", path, list));
  if (const auto node = parse_yaml(value, location, report))
    Reader("", root, report).read_value(*node, *named->field, path);
}

}  // namespace thimble::config
