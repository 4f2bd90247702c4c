#include "config/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "thimble/core/json.h"
#include "thimble/core/text.h"

namespace thimble::config {
namespace {

template <class T>
std::string integer_range(T low, T high) {
  return fmt::format("an integer from {} to {}", low, high);
}

// Returns the path as YAML: plain where that is unambiguous, else in double quotes, as in JSON.
std::string path_text(const std::string& path) {
  constexpr std::string_view kPlain = "/._-+0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const bool plain = path.empty() || (path[0] == '/' && path.find_first_not_of(kPlain) == std::string::npos);
  return plain ? path : json_text(path);
}

}  // namespace

bool assign(const Field& field, std::string_view text, bool quoted, const std::string& folder) {
  return std::visit(
      Overloaded{
          [](const Section&) { return false; },
          [&](const Base&) { return is_line(text) && !text.empty(); },
          [&](const Integer& rule) {
            if (!rule.unlimited.empty() && text == rule.unlimited) {
              *rule.value = kAll;
              return true;
            }
            const auto value = parse_number<std::int64_t>(text);
            if (quoted || !value || *value < rule.low || *value > rule.high) return false;
            *rule.value = *value;
            return true;
          },
          [&](const Seed& rule) {
            const auto value = parse_number<std::uint64_t>(text);
            if (quoted || !value) return false;
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
            const auto found = std::find(rule.names.begin(), rule.names.end(), text);
            if (found == rule.names.end()) return false;
            rule.set(rule.value, rule, static_cast<std::size_t>(found - rule.names.begin()));
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
            const char* home = text == "~" || text.starts_with("~/") ? std::getenv("HOME") : nullptr;
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
          [](const Integer& rule) {
            const std::string range = integer_range(rule.low, rule.high);
            return rule.unlimited.empty() ? range : fmt::format("{}, or {}", range, rule.unlimited);
          },
          [](const Seed&) {
            return integer_range(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max());
          },
          [](const Real& rule) {
            return fmt::format("a number {} {} and {} {}", rule.low_open ? "above" : "of at least", rule.low,
                               rule.high_open ? "below" : "at most", rule.high);
          },
          [](const Choice& rule) { return fmt::format("one of {}", fmt::join(rule.names, ", ")); },
          [](const Base&) { return std::string("the path of a config file"); },
          [](const Boolean&) { return std::string("true or false"); },
          [](const Text& rule) {
            return fmt::format("a text{}, in UTF-8 without control characters",
                               rule.may_be_empty ? "" : " that is not empty");
          },
          [](const Path&) {
            return std::string(
                "the path of a file, in UTF-8 without control characters (~ is expanded, $HOME is not)");
          },
      },
      field.kind);
}

std::string value_text(const Field& field) {
  return std::visit(Overloaded{
                        [](const Section&) { return std::string(); },
                        [](const Base&) { return std::string(); },
                        [](const Choice& rule) { return std::string(rule.get(rule.value, rule)); },
                        [](const Path& rule) { return path_text(*rule.value); },
                        [](const Text& rule) {
                          return rule.value->empty() && !rule.may_be_empty ? "" : json_text(*rule.value);
                        },
                        [](const Integer& rule) {
                          return *rule.value == kAll ? std::string(rule.unlimited)
                                                     : std::to_string(*rule.value);
                        },
                        [](const auto& rule) { return fmt::format("{}", *rule.value); },
                    },
                    field.kind);
}

}  // namespace thimble::config
