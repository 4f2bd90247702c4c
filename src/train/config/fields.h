// The keys of a config: each with its help, the variable it sets and the rule for its value. Reader, checks,
// dump and schema follow from this description alone.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "thimble/train/config.h"

namespace thimble::config {

template <class T>
struct Whole {
  T* value;
  T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();  // inclusive
  std::string_view keyword{};  // stands for kAll, or kAuto; "": there is none
};
using Integer = Whole<std::int64_t>;
using Seed = Whole<std::uint64_t>;

struct Real {
  double* value;
  double low, high;
  bool low_open = false, high_open = false;  // whether the bound itself is outside
};

// A choice of several names: enumerators, in the order of their enum, or strings; or of a list of them, joined by
// commas.
struct Choice {
  void* value;
  void (*set)(void* value, const Choice&, std::string_view text);  // one of `names`, or a list of them
  std::string (*get)(const void* value, const Choice&);
  std::vector<std::string_view> names;
  bool is_list = false;
};

struct Boolean {
  bool* value;
};

// An absolute path of a file; empty for none. On the command line paths and texts are taken as they are, unless the
// whole value is in quotes, as in YAML.
struct Path {
  std::string* value;
};

// A text for the user to choose, without control characters but tabs.
struct Text {
  std::string* value;
  bool may_be_empty = false;  // else empty is no value
};

// The path of the config file that this one builds on. The reader follows it; no variable stores it.
struct Base {};

struct Field;

struct Section {
  std::vector<Field> fields;

  // Returns the field of that key, or null.
  const Field* find(std::string_view key) const;
};

struct Field {
  std::string_view key;
  std::string_view help;
  std::variant<Section, Integer, Seed, Real, Choice, Boolean, Path, Text, Base> kind;
  bool applies = true;      // false when other values leave it without effect; a dump omits it
  bool may_change = false;  // whether training can resume with another value
  // The default of a key that version 0.3.0 does not have: files and hashes leave it out, so that runs and sweeps of
  // that version keep their identity. "": an older key.
  std::string_view newer{};

  const Section* section() const { return std::get_if<Section>(&kind); }
};

// A callable made of several lambdas, for std::visit of a kind.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 does not deduce it

// Returns the description of `config`, which must outlive it.
Section describe(Config& config);

std::vector<std::string_view> keys(const Section& section);

// A section or value with its dotted path.
struct Named {
  std::string path;
  const Field* field;
};
// Returns everything below `section`, depth first.
std::vector<Named> flatten(const Section& section, const std::string& prefix = "");

}  // namespace thimble::config
