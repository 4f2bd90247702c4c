// All that there is to say about a task.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/core/json.h"
#include "thimble/data/task.h"

namespace thimble {

// The same for people and for programs.
struct TaskPage {
  std::string text;
  Json json;
};

// `keys`: those of the config that the task reads, with their values. The examples are training sequences of
// that seed. `width`: of a line of text, in columns. Throws DataError as checked_task does.
TaskPage task_page(const TaskConfig&, const Json& keys, std::uint64_t seed, std::int64_t examples,
                   std::size_t width = 80);

}  // namespace thimble
