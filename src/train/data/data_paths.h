// The data files of a task.
#pragma once

#include <array>
#include <string>

#include "thimble/train/task.h"

namespace thimble {

// Returns the paths that the task config has for data files; "": none.
inline std::array<std::string*, 4> data_paths(TaskConfig& config) {
  return {&config.file, &config.validation_file, &config.test_file, &config.vocabulary_file};
}

}  // namespace thimble
