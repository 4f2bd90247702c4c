// Parameters in safetensors files, under PyTorch's names.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "thimble/autograd/parameter.h"

namespace thimble::inline THIMBLE_PRECISION {

// Replaces the file at once. Throws CheckpointError when it cannot be written.
void save_weights(const std::filesystem::path& path, const ParameterStore& store,
                  const std::map<std::string, std::string>& metadata);

// Fills every parameter, converting between float and double. Throws CheckpointError, naming file and tensor,
// when one is missing, has another shape, or has no place in the model; the store is then as before.
void load_weights(const std::filesystem::path& path, ParameterStore& store);

}  // namespace thimble::inline THIMBLE_PRECISION
