#include "thimble/train/checkpoint.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/tensor/safetensors.h"

namespace thimble::inline THIMBLE_PRECISION {

void save_weights(const std::filesystem::path& path, const ParameterStore& store,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<NamedBytes> tensors;
  for (const auto& entry : store.entries()) {
    const auto values = store.values().subspan(entry.offset, entry.size());
    tensors.push_back(
        {entry.name, sizeof(Real) == 4 ? DType::f32 : DType::f64, entry.shape, std::as_bytes(values)});
  }
  try {
    write_safetensors(path, tensors, metadata);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

void load_weights(const std::filesystem::path& path, ParameterStore& store) {
  const SafetensorsFile file(path);
  const auto& parameters = store.entries();
  for (const auto& [name, tensor] : file.entries()) {
    const bool known = std::ranges::any_of(parameters, [&](const auto& p) { return p.name == name; });
    require<CheckpointError>(
        known, "{}: tensor {} has no place in this model; is it the config it was trained with?",
        path.string(), name);
  }
  for (const auto& p : parameters) {
    const Shape& shape = file.entry(p.name).shape;
    require<CheckpointError>(shape == p.shape, "{}: tensor {} has shape {}, the model needs {}",
                             path.string(), p.name, shape, p.shape);
  }
  for (const auto& p : parameters) {
    std::ranges::copy(file.values<Real>(p.name),
                      store.values().begin() + static_cast<std::ptrdiff_t>(p.offset));
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION
