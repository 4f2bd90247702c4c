// The location of a value: in a file, or in an argument of the command line.
#pragma once

#include <string>

namespace thimble {

// The place of a value in a file, or an argument of the command line.
struct SourceLocation {
  std::string source{};      // path of the file, or the argument as it was written
  int line = 0, column = 0;  // in the file, from 1; 0: the file as a whole, or an argument
  int argument = 0;          // number of the argument, from 1; 0: in a file
};

}  // namespace thimble
