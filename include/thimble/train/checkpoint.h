// Parameters and the state of an optimizer in safetensors files, under PyTorch's names.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "thimble/autograd/parameter.h"
#include "thimble/optim/optimizer.h"
#include "thimble/tensor/safetensors.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Replaces the file at once. With an optimizer, its moments go along as optimizer.MOMENT.PARAMETER. Throws
// CheckpointError when it cannot be written.
void save_weights(const std::filesystem::path& path, const ParameterStore& store,
                  const std::map<std::string, std::string>& metadata, Optimizer* optimizer = nullptr);

// Fills every parameter, converting between float and double. Throws CheckpointError, naming file and tensor,
// when one is missing, has another shape, or has no place in the model; the store is then as before.
// Tensors named optimizer.* are passed over. Throws NumericError, naming file, tensor and element, for a
// number that is not finite.
void load_weights(const std::filesystem::path& path, ParameterStore& store);

// The same from a file that is open, and the optimizer's moments too, which must all be there.
void load_checkpoint(const SafetensorsFile& file, ParameterStore& store, Optimizer& optimizer);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
