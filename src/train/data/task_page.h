// A description of a task with examples.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/train/json.h"
#include "thimble/train/task.h"

namespace thimble {

// A description of a task as text and as JSON.
struct TaskPage {
  std::string text;
  Json json;
};

// Describes the task of a config. `keys` are the keys that the task reads, with their values; the examples
// are training sequences with that seed; `width` is that of text, in columns. Throws DataError as
// checked_task does.
TaskPage task_page(const TaskConfig&, const Json& keys, std::uint64_t seed, std::int64_t examples,
                   std::size_t width = 80);

}  // namespace thimble
