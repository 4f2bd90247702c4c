#include "train/files/checkpoint.h"

#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

const std::string kOptimizer = "optimizer.";

// A buffer with the layout of a store; its tensors are named prefix + parameter.
struct Buffer {
  std::string prefix;
  std::span<Real> values;
};

std::vector<Buffer> moments_of(Optimizer& optimizer) {
  std::vector<Buffer> buffers;
  for (const auto& moment : optimizer.moments())
    buffers.push_back({fmt::format("{}{}.", kOptimizer, moment.name), moment.values});
  return buffers;
}

// Throws, as load_weights does, unless the file has every tensor of the buffers and no other parameter.
void check(const SafetensorsFile& file, const ParameterStore& store, const std::vector<Buffer>& buffers) {
  const auto& parameters = store.entries();
  for (const auto& [name, tensor] : file.entries()) {
    const bool known =
        name.starts_with(kOptimizer) ||
        std::ranges::any_of(parameters, [&wanted = name](const auto& p) { return p.name == wanted; });
    require<CheckpointError>(known,
                             "{}: unexpected tensor {}; use the config that the weights were trained with",
                             file.path(), name);
  }
  for (const Buffer& buffer : buffers) {
    for (const auto& p : parameters) {
      const std::string name = buffer.prefix + p.name;
      const Shape& shape = file.entry(name).shape;
      require<CheckpointError>(shape == p.shape, "{}: tensor {} has shape {}, the model requires {}",
                               file.path(), name, shape, p.shape);
      const std::vector<Real> values = file.values<Real>(name);
      const auto bad = std::ranges::find_if(values, [](Real x) { return !std::isfinite(x); });
      require<NumericError>(
          bad == values.end(),
          "{}: tensor {}: element {} is {} as {}, not a finite number; use an earlier checkpoint",
          file.path(), name, bad - values.begin(), bad == values.end() ? 0 : *bad,
          sizeof(Real) == 4 ? "float32" : "float64");
    }
  }
}

void load(const SafetensorsFile& file, const ParameterStore& store, const std::vector<Buffer>& buffers) {
  check(file, store, buffers);
  for (const Buffer& buffer : buffers)
    for (const auto& p : store.entries())
      std::ranges::copy(file.values<Real>(buffer.prefix + p.name),
                        buffer.values.begin() + static_cast<std::ptrdiff_t>(p.offset));
  file.require_unchanged();
}

}  // namespace

void save_weights(const std::filesystem::path& path, const ParameterStore& store,
                  const std::map<std::string, std::string>& metadata, Optimizer* optimizer) {
  std::vector<NamedBytes> tensors;
  const auto add = [&](const std::string& prefix, std::span<const Real> values) {
    for (const auto& entry : store.entries())
      tensors.push_back({prefix + entry.name, sizeof(Real) == 4 ? DType::f32 : DType::f64, entry.shape,
                         std::as_bytes(values.subspan(entry.offset, entry.size()))});
  };
  add("", store.values());
  if (optimizer != nullptr)
    for (const Buffer& buffer : moments_of(*optimizer)) add(buffer.prefix, buffer.values);
  try {
    write_safetensors(path, tensors, metadata);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

void load_weights(const SafetensorsFile& file, ParameterStore& store) {
  load(file, store, {{"", store.values()}});
}

void load_weights(const std::filesystem::path& path, ParameterStore& store) {
  load_weights(SafetensorsFile(path), store);
}

void load_checkpoint(const SafetensorsFile& file, ParameterStore& store, Optimizer& optimizer) {
  std::vector<Buffer> buffers = moments_of(optimizer);
  buffers.push_back({"", store.values()});
  load(file, store, buffers);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
