#include "program/reproduce/measure.h"

#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/statistics.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Returns "a" and "b.c" for "a.b.c".
std::pair<std::string, std::string_view> split(std::string_view path) {
  const std::size_t dot = path.find('.');
  return {std::string(path.substr(0, dot)),
          dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1)};
}

const Json* child(const Json& node, const std::string& key) {
  if (node.is_object()) {
    const auto found = node.find(key);
    return found == node.end() ? nullptr : &*found;
  }
  const auto index = node.is_array() ? parse_number<std::size_t>(key) : std::nullopt;
  return index && *index < node.size() ? &node[*index] : nullptr;
}

void collect(const Json& node, std::string_view path, std::vector<const Json*>& out) {
  if (path.empty()) {
    out.push_back(&node);
    return;
  }
  const auto [key, rest] = split(path);
  if (key == "*") {
    if (node.is_structured())
      for (const Json& each : node) collect(each, rest, out);
  } else if (const Json* next = child(node, key)) {
    collect(*next, rest, out);
  }
}

bool matches(const Json& node, const Filter& filter, const Values& known) {
  const auto passes = [&](const Json* found) {
    if (filter.bound) return found->is_number() && holds(*filter.bound, found->get<double>(), known);
    return (found->is_string() ? found->get<std::string>() : found->dump()) == filter.equals;
  };
  return std::ranges::any_of(find_all(node, filter.path), passes);
}

// Returns the matches of the path through the nodes, among the matches of its first *, that pass all filters.
std::vector<const Json*> find_filtered(const Json& document, const ExperimentValue& value,
                                       const Values& known) {
  if (value.where.empty()) return find_all(document, value.path);
  const std::string padded = "." + value.path + ".";
  const std::size_t star = padded.find(".*.");  // equals the index of * in the path
  const std::string head = star == 0 ? "" : value.path.substr(0, star - 1);
  const std::string tail = star + 2 > value.path.size() ? "" : value.path.substr(star + 2);
  std::vector<const Json*> out;
  for (const Json* each : find_all(document, head.empty() ? "*" : head + ".*")) {
    const auto passes_filter = [&](const Filter& filter) { return matches(*each, filter, known); };
    if (std::ranges::all_of(value.where, passes_filter)) collect(*each, tail, out);
  }
  return out;
}

std::vector<double> numbers(const std::vector<const Json*>& found, const ExperimentValue& value) {
  std::vector<double> out;
  for (const Json* each : found) {
    if (each->is_null()) continue;
    require<DataError>(each->is_number() || each->is_boolean(), "{}: {} of {} is {}, not a number",
                       value.name, value.path, value.of,
                       each->is_structured() ? "a list or map" : each->dump());
    out.push_back(each->is_boolean() ? each->get<bool>() : each->get<double>());
  }
  return out;
}

}  // namespace

std::vector<const Json*> find_all(const Json& document, std::string_view path) {
  std::vector<const Json*> out;
  collect(document, path, out);
  return out;
}

double measure(const Json& document, const ExperimentValue& value, const Values& known) {
  const std::vector<const Json*> found = find_filtered(document, value, known);
  if (value.take == Take::count) return static_cast<double>(found.size());
  const std::vector<double> all = numbers(found, value);
  if (all.empty() && value.otherwise) return *value.otherwise;
  require<DataError>(!all.empty(), "{}: {} of {} matches nothing", value.name, value.path, value.of);
  require<DataError>(value.take != Take::only || all.size() == 1,
                     "{}: {} of {} matches {} numbers; choose with take or where", value.name, value.path,
                     value.of, all.size());
  const Spread of = spread(all);
  const double taken[] = {all.front(), all.front(), all.back(), of.min, of.max, of.mean};  // by Take
  return taken[static_cast<std::size_t>(value.take)];
}

bool holds(const Bound& bound, double x, const Values& known) {
  const double at = bound.value.empty() ? bound.number : known.at(bound.value);
  const bool is_least = bound.relation == Bound::at_least || bound.relation == Bound::above;
  const double end = is_least ? at + bound.by : at - bound.by;
  if (x == end) return bound.relation == Bound::at_least || bound.relation == Bound::at_most;
  return is_least ? x > end : x < end;
}

std::string describe(const Condition& condition) {
  constexpr std::string_view kSigns[] = {">=", "<=", ">", "<"};
  const Bound& bound = condition.bound;
  const bool is_upper = bound.relation == Bound::at_most || bound.relation == Bound::below;
  std::string text = fmt::format("{} {} ", condition.value, kSigns[bound.relation]);
  text += bound.value.empty() ? fmt::format("{:g}", bound.number) : bound.value;
  const double by = is_upper ? -bound.by : bound.by;
  if (by != 0) text += fmt::format(" {} {:g}", by < 0 ? '-' : '+', std::abs(by));
  return text;
}

}  // namespace thimble
