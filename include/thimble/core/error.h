// Errors that thimble throws. A message names the operation or the file, the rule and what to do about it;
// libraries only throw, the command line alone prints and turns a type into an exit status.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace thimble {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Tensors of shapes that do not fit each other, or an index outside its range.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// A command line or a config that cannot be used.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// Data that a task or a file cannot supply.
class DataError : public Error {
 public:
  using Error::Error;
};

// A checkpoint or run directory that cannot be read or written.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

// A file that cannot be read or written.
class FileError : public Error {
 public:
  using Error::Error;
};

// A number that is not finite where only finite ones make sense.
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
