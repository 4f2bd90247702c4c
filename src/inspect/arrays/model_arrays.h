// The arrays of a model in one precision.
#pragma once

#include <memory>

#include "thimble/inspect/arrays.h"

namespace thimble {

template <class R>
std::unique_ptr<ModelArrays> make_arrays(const ModelSource& model, bool trained);

// Returns those of `names` that match a pattern, in which * stands for any characters. Throws DataError if none does.
std::vector<std::string> matching(const std::vector<std::string>& names, const std::string& pattern);

}  // namespace thimble
