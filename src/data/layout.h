// How examples are laid out.
#pragma once

#include <string>

#include "thimble/data/dataset.h"

namespace thimble {

// Returns which rule keeps examples of that size from being laid out that way; "": none does. `sparse`: some
// positions have no answer.
std::string layout_mismatch(Layout layout, ExampleSize size, bool sparse);

// Returns "; set KEY=VALUE", what asks for layout `to` in place of `from`; "" when nothing does.
std::string layout_remedy(Layout from, Layout to);

// Throws DataError unless targets of that size can be laid out that way.
void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size);

// Tokens that the model reads of an example of that size, beside those of the source.
std::int64_t laid_out_length(Layout layout, ExampleSize size);

}  // namespace thimble
