#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>

#include "config/text.h"

namespace thimble::config {
namespace {

// Refuses what YAML allows and a config does not need: aliases, which yaml-cpp follows without a trace when
// it builds nodes, in circles even, and further documents.
class Screen : public YAML::EventHandler {
 public:
  using Style = YAML::EmitterStyle::value;

  Screen(int file, Report& report) : file_(file), report_(report) {}

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
    report_.problem(place_of(mark, file_), "", rule);
    passed_ = false;
  }

  int file_;
  Report& report_;
  int documents_ = 0;
  bool passed_ = true;
};

}  // namespace

Place place_of(const YAML::Mark& mark, int file) {  // yaml-cpp counts from 0, and has -1 for nowhere
  return {.file = file, .line = std::max(mark.line, 0) + 1, .column = std::max(mark.column, 0) + 1};
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
  const std::string text = shortened(node.Scalar(), kLongest);
  return node.Tag() == "!" ? '"' + text + '"' : text;  // "!" is what yaml-cpp tags quoted text with
}

std::optional<YAML::Node> parse_yaml(const std::string& text, int file, Report& report) {
  if (!check_text(text, file, report)) return std::nullopt;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Screen screen(file, report);
    // Stops early: after a stray comma yaml-cpp would find documents without end.
    while (screen.passed() && parser.HandleNextDocument(screen)) {
    }
    if (screen.passed()) return YAML::Load(text);
  } catch (const YAML::DeepRecursion& e) {  // whose own message is "bad file"
    report.problem(place_of(e.mark, file), "", "not valid YAML: nested too deeply");
  } catch (const YAML::Exception& e) {
    report.problem(place_of(e.mark, file), "", fmt::format("not valid YAML: {}", e.msg));
  }
  return std::nullopt;
}

}  // namespace thimble::config
