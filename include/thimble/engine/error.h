// Errors that thimble throws. A message names the operation or the file, the rule and what to do about it;
// libraries only throw, the command line alone prints and turns a type into an exit status.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "thimble/engine/source_location.h"

namespace thimble {

// The base of every error that thimble throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown for tensors of shapes that do not fit each other, and for an index outside its range.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// A rule that a config or a command line breaks.
struct ConfigProblem {
  std::string key{};          // dotted path; "": the file as a whole
  SourceLocation location{};  // without a source: nowhere in particular
  std::string rule{};         // which rule is broken, and the remedy
};

// Thrown for a command line or a config that cannot be used.
class ConfigError : public Error {
 public:
  // Makes one problem, whose rule is the message.
  explicit ConfigError(const std::string& message) : Error(message), problems_(1) {
    problems_[0].rule = message;
  }
  ConfigError(const std::string& message, std::vector<ConfigProblem> problems)
      : Error(message), problems_(std::move(problems)) {}

  const std::vector<ConfigProblem>& problems() const { return problems_; }  // at least one

 private:
  std::vector<ConfigProblem> problems_;
};

// Thrown for data that a task or a file cannot supply.
class DataError : public Error {
 public:
  using Error::Error;
};

// Thrown for a checkpoint or a run directory that cannot be read or written.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

// Thrown for a file that cannot be read or written.
class FileError : public Error {
 public:
  using Error::Error;
};

// Thrown for a number that is not finite where only finite ones make sense.
class NumericError : public Error {
 public:
  using Error::Error;
};

// Throws E with the formatted message unless `condition` holds.
template <class E, class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) [[unlikely]]
    throw E(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace thimble
