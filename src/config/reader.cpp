#include "config/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "config/nearest.h"
#include "config/text.h"
#include "config/value.h"

namespace thimble::config {
namespace {

Place place_of(const YAML::Mark& mark) {  // yaml-cpp counts from 0, and has -1 for nowhere
  return {.line = std::max(mark.line, 0) + 1, .column = std::max(mark.column, 0) + 1};
}

std::string found(const YAML::Node& node) {
  constexpr std::size_t kLongest = 40;
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      break;
    default:
      return "empty";
  }
  std::string text = node.Scalar();
  if (text.size() > kLongest) text = std::string(first_characters(text, kLongest)) + "...";
  return node.Tag() == "!" ? '"' + text + '"' : text;  // "!" is what yaml-cpp tags quoted text with
}

// What to say about a dotted path that is none.
std::string unknown_key(const std::string& path, const Section& root, Report& report) {
  const std::size_t dot = path.rfind('.') + 1;  // 0 without a dot
  const std::string parent = path.substr(0, dot), key = path.substr(dot);
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

// Refuses what YAML allows and a config does not need: aliases, which yaml-cpp follows without a trace when
// it builds nodes, in circles even, and further documents.
class Screen : public YAML::EventHandler {
 public:
  using Style = YAML::EmitterStyle::value;

  explicit Screen(Report& report) : report_(report) {}

  bool passed() const { return passed_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document; a config file holds one");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias; write the value itself");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}

 private:
  void refuse(const YAML::Mark& mark, std::string_view rule) {
    report_.problem(place_of(mark), "", rule);
    passed_ = false;
  }

  Report& report_;
  int documents_ = 0;
  bool passed_ = true;
};

// The nodes of the text, or none if there is a problem with it.
std::optional<YAML::Node> parse(const std::string& text, Report& report) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Screen screen(report);
    // Stops early: after a stray comma yaml-cpp would find documents without end.
    while (screen.passed() && parser.HandleNextDocument(screen)) {
    }
    if (screen.passed()) return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    report.problem(place_of(e.mark), "", fmt::format("not valid YAML: {}", e.msg));
  }
  return std::nullopt;
}

class Reader {
 public:
  // Relative paths start at `folder`.
  Reader(const Section& root, std::string folder, Report& report)
      : root_(root), folder_(std::move(folder)), report_(report) {}

  // The map `node` as the section whose path is `parent`, "" or "a.b.".
  void read_map(const YAML::Node& node, const Section& section, const std::string& parent) {
    std::map<std::string, int> lines;  // of the keys so far
    for (const auto& entry : node) {
      const Place place = place_of(entry.first.Mark());
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
    const Place place = key_is_nearer ? key_place : place_of(node.Mark());
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
  const Section& root_;
  std::string folder_;
  Report& report_;
};

}  // namespace

void read_yaml(const std::string& text, const Section& root, Report& report) {
  if (!check_text(text, report)) return;
  const std::optional<YAML::Node> node = parse(text, report);
  if (!node) return;
  const Field whole{"", "", root};
  if (node->IsNull())
    return report.problem({}, "", fmt::format("the file is empty; a config is {}", expectation(whole)));
  if (!node->IsMap())
    return report.problem(place_of(node->Mark()), "",
                          fmt::format("must be {}, not {}", expectation(whole), found(*node)));
  Reader(root, std::filesystem::path(report.file_name()).parent_path().string(), report)
      .read_map(*node, root, "");
}

void read_override(const std::string& argument, int number, const Section& root, Report& report) {
  const Place place{.argument = number, .argument_text = argument};
  if (!is_line(argument)) return report.problem(place, "", "must be UTF-8 without control characters");
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return report.problem(place, argument, "must be key=value");
  const std::string path = argument.substr(0, equals);

  const std::vector<Named> all = flatten(root);
  const auto named = std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.path == path; });
  if (named == all.end()) return report.problem(place, path, unknown_key(path, root, report));
  if (const Section* section = named->field->section())
    return report.problem(
        place, path,
        fmt::format("a section; set its keys one by one, as in {}.{}=VALUE", path, section->fields[0].key));
  try {
    Reader(root, "", report).read_value(YAML::Load(argument.substr(equals + 1)), *named->field, path, place);
  } catch (const YAML::Exception& e) {
    report.problem(place, path, fmt::format("not a YAML value: {}", e.msg));
  }
}

}  // namespace thimble::config
