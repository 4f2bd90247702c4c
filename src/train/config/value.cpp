#include "train/config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "train/files/text/text.h"

namespace thimble::config {
namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Returns whether the text needs no quotes: it starts as no number and no date does, has no character with a
// meaning in YAML, and is no word that YAML 1.1 reads as a boolean or as nothing.
bool is_plain(std::string_view text) {
  constexpr std::string_view kWords[] = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"};
  const std::string first = fmt::format("/_{}", kLetters), all = fmt::format("{}.-+0123456789", first);
  if (text.empty() || first.find(text[0]) == std::string::npos || text.find_first_not_of(all) != text.npos)
    return false;
  std::string lower(text);
  for (char& c : lower) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::find(kWords, lower) == std::end(kWords);
}

// Returns whether a reader of YAML 1.1 refuses the character within quotes, or takes it for a line break or a
// byte order mark.
bool must_escape(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029 ||
         point == 0xFEFF || point == 0xFFFE || point == 0xFFFF;
}

// Returns the number with a point, without which a reader of YAML 1.1 takes 3e-05 for a name, and 1 for an
// integer.
std::string yaml_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace

std::string yaml_text(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out = "\"";
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.point == '"' || c.point == '\\')
      out += fmt::format("\\{}", c.bytes);
    else
      out += must_escape(c.point) ? fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.point))
                                  : std::string(c.bytes);
    text.remove_prefix(c.bytes.size());
  }
  return out + '"';
}

bool assign(const Field& field, std::string_view text, bool quoted, const std::string& folder) {
  return std::visit(
      Overloaded{
          [](const Section&) { return false; },
          [&](const Base&) { return is_line(text) && !text.empty(); },
          [&]<class T>(const Whole<T>& rule) {
            if (!rule.keyword.empty() && text == rule.keyword) {
              *rule.value = kAll;
              return true;
            }
            const auto value = parse_number<T>(text);
            if (quoted || !value || *value < rule.low || *value > rule.high) return false;
            *rule.value = *value;
            return true;
          },
          [&](const Real& rule) {
            const auto value = parse_number<double>(text);
            if (quoted || !value || !std::isfinite(*value)) return false;
            if (*value < rule.low || *value > rule.high) return false;
            if ((rule.low_open && *value == rule.low) || (rule.high_open && *value == rule.high))
              return false;
            *rule.value = *value;
            return true;
          },
          [&](const Choice& rule) {
            for (const std::string_view name : rule.is_list ? split_at(',', text) : std::vector{text})
              if (std::ranges::find(rule.names, name) == rule.names.end()) return false;
            rule.set(rule.value, rule, text);
            return true;
          },
          [&](const Boolean& rule) {
            if (quoted || (text != "true" && text != "false")) return false;
            *rule.value = text == "true";
            return true;
          },
          [&](const Text& rule) {
            std::string line(text);
            std::erase(line, '\t');
            if (!is_line(line) || (text.empty() && !rule.may_be_empty)) return false;
            *rule.value = text;
            return true;
          },
          [&](const Path& rule) {
            if (text.empty() || text.starts_with('$')) return false;
            const char* home = text.starts_with("~/") ? std::getenv("HOME") : nullptr;
            const std::string file = home == nullptr ? std::string(text) : home + std::string(text.substr(1));
            const auto whole = std::filesystem::absolute(std::filesystem::path(folder) / file);
            const std::string path = whole.lexically_normal().string();
            if (!is_line(path)) return false;
            *rule.value = path;
            return true;
          },
      },
      field.kind);
}

std::string expectation(const Field& field) {
  return std::visit(
      Overloaded{
          [](const Section& rule) { return fmt::format("a map of {}", fmt::join(keys(rule), ", ")); },
          []<class T>(const Whole<T>& rule) {
            const std::string range = fmt::format("an integer from {} to {}", rule.low, rule.high);
            return rule.keyword.empty() ? range : fmt::format("{}, or {}", range, rule.keyword);
          },
          [](const Real& rule) {
            return fmt::format("a number {} {} and {} {}", rule.low_open ? "above" : "of at least", rule.low,
                               rule.high_open ? "below" : "at most", rule.high);
          },
          [](const Choice& rule) {
            return fmt::format("one of {}{}", fmt::join(rule.names, ", "),
                               rule.is_list ? ", or several joined by commas" : "");
          },
          [](const Base&) { return std::string("the path of a config file"); },
          [](const Boolean&) { return std::string("true or false"); },
          [](const Text& rule) {
            return fmt::format("a text{}, in UTF-8 without control characters",
                               rule.may_be_empty ? "" : " that is not empty");
          },
          [](const Path&) {
            return std::string(
                "a file whose path, from / on, is UTF-8 without control characters (~ is expanded, $HOME is not)");
          },
      },
      field.kind);
}

std::string value_text(const Field& field) {
  return std::visit(Overloaded{
                        [](const Section&) { return std::string(); },
                        [](const Base&) { return std::string(); },
                        [](const Choice& rule) { return yaml_text(rule.get(rule.value, rule)); },
                        [](const Path& rule) { return rule.value->empty() ? "" : yaml_text(*rule.value); },
                        [](const Real& rule) { return yaml_number(*rule.value); },
                        [](const Text& rule) {
                          return rule.value->empty() && !rule.may_be_empty ? "" : yaml_text(*rule.value);
                        },
                        [](const Integer& rule) {
                          return *rule.value == kAll ? std::string(rule.keyword)
                                                     : std::to_string(*rule.value);
                        },
                        [](const auto& rule) { return fmt::format("{}", *rule.value); },
                    },
                    field.kind);
}

}  // namespace thimble::config
