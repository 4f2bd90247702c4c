#include "thimble/engine/parameter.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstddef>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

constexpr std::size_t kStep = kAlignment / sizeof(Real);  // between the starts of parameters

Parameter ParameterStore::add(std::string name, Shape shape) {
  const bool taken =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  require<Error>(!taken, "parameter store: there is a parameter {} already", name);
  entries_.push_back({std::move(name), shape, size_});
  size_ += (static_cast<std::size_t>(shape.elements()) + kStep - 1) / kStep * kStep;
  if (holds_values()) values_.resize(size_);
  return {static_cast<int>(entries_.size()) - 1};
}

std::size_t ParameterStore::count() const {
  std::size_t n = 0;
  for (const Entry& e : entries_) n += e.size();
  return n;
}

std::string ParameterStore::hash() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const Entry& e : entries_)
    XXH3_64bits_update(&state, values_.data() + e.offset, e.size() * sizeof(Real));
  return fmt::format("{:016x}", XXH3_64bits_digest(&state));
}

namespace {

// Returns the elements of both packed forms of a matrix, a multiple of the alignment each; 0 for other shapes.
std::pair<std::size_t, std::size_t> packed_sizes(const Shape& shape) {
  if (shape.rank() != 2) return {};
  const auto aligned = [](std::int64_t elements) {
    return (static_cast<std::size_t>(elements) + kStep - 1) / kStep * kStep;
  };
  return {aligned(kernels::packed_size(shape[1], shape[0])),
          aligned(kernels::packed_size(shape[0], shape[1]))};
}

}  // namespace

PackedWeights::PackedWeights(const ParameterStore& store)
    : store_(&store), packed_(store.entries().size()), values_(size(store)) {
  Real* to = values_.data();
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    const auto [forward, backward] = packed_sizes(store.entries()[i].shape);
    if (forward == 0) continue;
    matrices_.push_back({static_cast<int>(i)});
    packed_[i] = {{.data = to}, {.data = to + forward}};
    to += forward + backward;
  }
}

std::size_t PackedWeights::size(const ParameterStore& store) {
  std::size_t sum = 0;
  for (const ParameterStore::Entry& entry : store.entries()) {
    const auto [forward, backward] = packed_sizes(entry.shape);
    sum += forward + backward;
  }
  return sum;
}

void PackedWeights::refresh(std::int64_t i) {
  const Parameter p = matrices_[static_cast<std::size_t>(i)];
  const Shape& shape = store_->entry(p).shape;
  const ConstMatrixView weight{store_->values(p).data(), shape[0], shape[1], shape[1]};
  PackedWeight& packed = packed_[static_cast<std::size_t>(p.index)];
  const auto memory = [&](const kernels::PackedView& view) {
    return values_.data() + (view.data - values_.data());
  };
  packed.forward = kernels::pack(memory(packed.forward), weight, kernels::Op::transpose);
  packed.backward = kernels::pack(memory(packed.backward), weight, kernels::Op::none);
}

void init_uniform(ParameterStore& store, Parameter p, std::uint64_t seed, double bound) {
  const Random random(seed, Stream::init);
  std::uint64_t i = 0;
  for (Real& value : store.values(p)) {
    value = static_cast<Real>(bound * (2 * random.uniform(i++, static_cast<std::uint32_t>(p.index)) - 1));
  }
}

void init_normal(ParameterStore& store, Parameter p, std::uint64_t seed, double standard_deviation) {
  const Random random(seed, Stream::init);
  std::uint64_t i = 0;
  for (Real& value : store.values(p)) {
    value = static_cast<Real>(standard_deviation * random.normal(i++, static_cast<std::uint32_t>(p.index)));
  }
}

void init_constant(ParameterStore& store, Parameter p, Real value) {
  std::ranges::fill(store.values(p), value);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
