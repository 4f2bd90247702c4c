// A description of a task with examples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "thimble/train/json.h"
#include "thimble/train/source.h"

namespace thimble {

// A description of a task as text and as JSON.
struct TaskPage {
  std::string text;
  Json json;
};

// Describes the task of a source. `keys` are the keys that the task reads, with their values; the examples
// are training sequences with that seed; `width` is that of text, in columns.
TaskPage task_page(const std::shared_ptr<const Source>&, const Json& keys, std::uint64_t seed,
                   std::int64_t examples, std::size_t width = 80);

}  // namespace thimble
