// How examples are laid out.
#pragma once

#include <string>

#include "thimble/data/dataset.h"

namespace thimble {

// Throws DataError unless targets of that size can be laid out that way.
void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size);

// Tokens that the model reads of an example of that size, beside those of the source.
std::int64_t laid_out_length(Layout layout, ExampleSize size);

}  // namespace thimble
