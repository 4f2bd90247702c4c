// Rules for laying out examples.
#pragma once

#include <string>
#include <string_view>

#include "thimble/train/dataset.h"

namespace thimble {

// Returns the rule that examples of that size break in the layout; "" if they can be laid out. `sparse`: some
// positions have no answer.
std::string layout_mismatch(Layout layout, ExampleSize size, bool sparse);

// Returns the value of model.output.per for a layout of an encoder.
std::string_view layout_name(Layout layout);

// Returns "; set KEY=VALUE", which changes layout `from` to `to`; "" if they are equal or no key does.
std::string layout_remedy(Layout from, Layout to);

// Throws DataError when examples of that size cannot be laid out that way.
void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size);

// Returns how many tokens of an example of that size the model reads, without the source.
std::int64_t laid_out_length(Layout layout, ExampleSize size);

}  // namespace thimble
