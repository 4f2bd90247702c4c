// The settings of a random search, drawn as a pure function of its seed.
#pragma once

#include <cstdint>
#include <vector>

#include "train/config/changes.h"
#include "train/config/yaml.h"

namespace thimble {

// The part `random` of a sweep file: a number of samples, a seed, and for each key of the config a list of
// values or a range.
class RandomSearch {
 public:
  RandomSearch(config::ChangeReader& changes, config::Report& report) : changes_(changes), report_(report) {}

  void read(const config::YamlNode& node);

  std::int64_t samples() const { return samples_; }

  // Returns a change for each key, with the location of its values and the first of them.
  config::Changes keys() const;

  // Draws the samples, each of which differs from those before it. The value of a key depends on the seed, the
  // key and the number of the sample only, except where a sample is drawn again. Reports a problem if too few
  // are found.
  std::vector<config::Changes> draw() const;

 private:
  enum class Kind { choice, uniform, log_uniform, int_uniform };
  struct Parameter {
    Kind kind = Kind::choice;
    config::Changes values;  // those of a list; of a range its ends
    double low = 0, high = 0;
    std::int64_t first = 0, last = 0;  // of int_uniform
  };

  void read_parameter(const config::YamlNode& key, const config::YamlNode& node);
  bool read_range(const config::YamlNode& key, const config::YamlNode& node, Parameter& parameter);
  config::Change value(const Parameter& parameter, std::int64_t sample, std::uint32_t attempt) const;

  config::ChangeReader& changes_;
  config::Report& report_;
  SourceLocation location_;
  std::int64_t samples_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<Parameter> parameters_;
};

}  // namespace thimble
