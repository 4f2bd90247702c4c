// What a config consists of: every key with its help, the variable it sets and the rule for its value.
// Reader, checks, dump and schema walk this description; nothing else knows a key.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "thimble/config/config.h"

namespace thimble::config {

struct Integer {
  std::int64_t* value;
  std::int64_t low, high;  // inclusive
};

struct Seed {
  std::uint64_t* value;  // anything goes
};

struct Real {
  double* value;
  double low, high;
  bool low_open = false, high_open = false;  // whether the bound itself is outside
};

// One of several names: an enumerator, in the order of its enum, or a string.
struct Choice {
  void* value;
  void (*set)(void* value, const Choice&, std::size_t index);
  std::string_view (*get)(const void* value, const Choice&);
  std::vector<std::string_view> names;
};

struct Boolean {
  bool* value;
};

// The path of a file: absolute, or empty for none.
struct Path {
  std::string* value;
};

// Another config file, which this one builds on. The reader follows it; no variable keeps it.
struct Base {};

struct Field;

struct Section {
  std::vector<Field> fields;

  // The field of that key, or null.
  const Field* find(std::string_view key) const;
};

struct Field {
  std::string_view key;
  std::string_view help;
  std::variant<Section, Integer, Seed, Real, Choice, Boolean, Path, Base> kind;
  bool applies = true;      // whether the other values leave it a meaning; a dump leaves it out if not
  bool may_change = false;  // whether training can go on from a checkpoint with another value

  const Section* section() const { return std::get_if<Section>(&kind); }
};

// One callable out of several lambdas, for std::visit of a kind.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 does not deduce it

// The description of `config`; its variables are those of `config`, which must outlive it.
Section describe(Config& config);

std::vector<std::string_view> keys(const Section& section);

// Each section and value below `section` with its dotted path, depth first.
struct Named {
  std::string path;
  const Field* field;
};
std::vector<Named> flatten(const Section& section, const std::string& prefix = "");

}  // namespace thimble::config
