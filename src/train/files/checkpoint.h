// Saves parameters and optimizer state to safetensors files, under PyTorch's names, and loads them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "thimble/engine/optimizer.h"
#include "thimble/engine/parameter.h"
#include "thimble/train/safetensors.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Writes the file atomically. The moments of an optimizer become tensors optimizer.MOMENT.PARAMETER. Throws
// CheckpointError when the file cannot be written.
void save_weights(const std::filesystem::path& path, const ParameterStore& store,
                  const std::map<std::string, std::string>& metadata, Optimizer* optimizer = nullptr);

// Loads every parameter, converting between float and double, and ignores tensors named optimizer.*. Throws
// CheckpointError, naming file and tensor, when a tensor is missing, has another shape or is none of the
// model's, and NumericError, naming file, tensor and element, for a number that is not finite; the store is
// unchanged then. Throws CheckpointError when the file is written to meanwhile.
void load_weights(const SafetensorsFile& file, ParameterStore& store);
void load_weights(const std::filesystem::path& path, ParameterStore& store);

// Loads parameters and all moments of the optimizer from an open file. Throws as load_weights does.
void load_checkpoint(const SafetensorsFile& file, ParameterStore& store, Optimizer& optimizer);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
