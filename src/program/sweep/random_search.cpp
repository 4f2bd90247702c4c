#include "program/sweep/random_search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/core/portable_math.h"
#include "program/sweep/sweep.h"
#include "thimble/engine/random.h"
#include "train/files/hash.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

using config::Change;
using config::Changes;
using config::YamlNode;

namespace {

constexpr std::string_view kRandomKeys[] = {"samples", "seed"};
constexpr std::string_view kRangeNames[] = {"", "uniform", "log_uniform", "int_uniform"};

}  // namespace

void RandomSearch::read(const YamlNode& node) {
  location_ = node.location;
  if (!node.is_filled(YamlNode::Kind::map))
    return must_be(node, "random", "a map with samples, seed, and keys of the config", report_);
  bool has_samples = false;
  for_entries(node, "random.", report_, [&](const YamlNode& key, const YamlNode& value) {
    if (key.text == "samples") {
      has_samples = true;
      const auto count = number_of<std::int64_t>(value);
      if (count && *count >= 1 && *count <= kMaxSweepRuns)
        samples_ = *count;
      else
        must_be(value, "random.samples", fmt::format("an integer from 1 to {}", kMaxSweepRuns), report_);
    } else if (key.text == "seed") {
      const auto seed = number_of<std::uint64_t>(value);
      if (seed)
        seed_ = *seed;
      else
        must_be(value, "random.seed", "an integer from 0 to 18446744073709551615", report_);
    } else if (const auto nearest = nearest_name(key.text, kRandomKeys); !nearest.empty()) {
      has_samples |= nearest == "samples";
      unknown_key(key, kRandomKeys, report_);
    } else {
      read_parameter(key, value);
    }
  });
  if (!has_samples)
    report_.problem(location_, "random.samples", "missing key; set it to the number of settings to draw");
}

void RandomSearch::read_parameter(const YamlNode& key, const YamlNode& node) {
  Parameter parameter;
  if (node.is_filled(YamlNode::Kind::list)) {
    for (const YamlNode& value : node.values) changes_.read_change(key, value, parameter.values);
    if (!parameter.values.empty()) parameters_.push_back(std::move(parameter));
  } else if (node.is_map() && node.keys.size() == 1) {
    if (read_range(key, node, parameter)) parameters_.push_back(std::move(parameter));
  } else {
    must_be(node, key.text, "a list of values, or a range such as {uniform: [0, 0.5]}", report_);
  }
}

bool RandomSearch::read_range(const YamlNode& key, const YamlNode& node, Parameter& parameter) {
  const YamlNode& name = node.keys[0];
  const YamlNode& ends = node.values[0];
  const auto found = std::ranges::find(kRangeNames, name.text);
  if (found == std::end(kRangeNames) || name.text.empty()) {
    unknown_key(name, std::span(kRangeNames).subspan(1), report_);
    return false;
  }
  parameter.kind = static_cast<Kind>(found - std::begin(kRangeNames));
  const bool is_integer = parameter.kind == Kind::int_uniform, is_log = parameter.kind == Kind::log_uniform;
  bool valid = ends.is_list() && ends.values.size() == 2;
  if (valid && is_integer) {
    const auto first = number_of<std::int64_t>(ends.values[0]),
               last = number_of<std::int64_t>(ends.values[1]);
    valid = first && last && *first >= 0 && *first < *last;
    if (valid) parameter.first = *first, parameter.last = *last;
  } else if (valid) {
    const auto low = number_of<double>(ends.values[0]), high = number_of<double>(ends.values[1]);
    valid = low && high && std::isfinite(*high - *low) && *low < *high && (!is_log || *low > 0);
    if (valid) parameter.low = *low, parameter.high = *high;
  }
  if (!valid) {
    report_.problem(ends.location, key.text,
                    is_integer
                        ? "must be two integers [a, b] with 0 <= a < b"
                        : fmt::format("must be two numbers [a, b] with {}a < b", is_log ? "0 < " : ""));
    return false;
  }
  for (const YamlNode& end : ends.values) changes_.read_change(key, end, parameter.values);
  return parameter.values.size() == 2;
}

Changes RandomSearch::keys() const {
  Changes keys;
  for (const Parameter& parameter : parameters_) keys.push_back(parameter.values[0]);
  return keys;
}

Change RandomSearch::value(const Parameter& parameter, std::int64_t sample, std::uint32_t attempt) const {
  Change change = parameter.values[0];
  // A generator for each key, so that a new key changes no value of another one.
  const Random random(hash_of(fmt::format("{} {}", seed_, change.key)), Stream::split);
  const auto counter = static_cast<std::uint64_t>(sample);
  if (parameter.kind == Kind::choice)
    return parameter.values[random.below(parameter.values.size(), counter, attempt)];
  if (parameter.kind == Kind::int_uniform) {
    const auto count = static_cast<std::uint64_t>(parameter.last - parameter.first) + 1;
    const auto drawn = static_cast<std::int64_t>(random.below(count, counter, attempt));
    change.text = fmt::format("{}={}", change.key, parameter.first + drawn);
    return change;
  }
  const double u = random.uniform(counter, attempt);
  const double log_low = parameter.kind == Kind::log_uniform ? portable::log(parameter.low) : 0;
  const double x = parameter.kind == Kind::log_uniform
                       ? portable::exp(log_low + u * (portable::log(parameter.high) - log_low))
                       : parameter.low + u * (parameter.high - parameter.low);
  const std::string text = fmt::format("{:.4g}", x);  // as many digits as anyone reads
  const double rounded = *parse_number<double>(text);
  if (rounded > parameter.high) return parameter.values[1];
  if (rounded >= parameter.low) change.text = change.key + '=' + text;
  return change;
}

std::vector<Changes> RandomSearch::draw() const {
  constexpr std::uint32_t kAttempts = 100;
  std::vector<Changes> samples;
  std::set<std::vector<std::string>> drawn;
  if (parameters_.empty()) return samples;
  for (std::int64_t sample = 0; sample < samples_; ++sample) {
    Changes changes;
    std::uint32_t attempt = 0;
    do {
      changes.clear();
      for (const Parameter& parameter : parameters_) changes.push_back(value(parameter, sample, attempt));
    } while (!drawn.insert(texts(changes)).second && ++attempt < kAttempts);
    if (attempt == kAttempts) {
      report_.problem(
          location_, "random",
          fmt::format(
              "only {} different settings were found for {} samples; lower samples, or list all settings with grid",
              sample, samples_));
      return samples;
    }
    samples.push_back(std::move(changes));
  }
  return samples;
}

}  // namespace thimble
