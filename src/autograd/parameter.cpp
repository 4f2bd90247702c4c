#include "thimble/autograd/parameter.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstddef>

#include "thimble/core/error.h"
#include "thimble/kernels/linear.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Parameter ParameterStore::add(std::string name, Shape shape) {
  const bool taken =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  require<Error>(!taken, "parameter store: there is a parameter {} already", name);
  constexpr std::size_t kStep = kAlignment / sizeof(Real);
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

Transposes::Transposes(const ParameterStore& store) : store_(&store) {
  if (!kernels::wants_transposed()) return;
  values_.resize(store.size());
  for (std::size_t i = 0; i < store.entries().size(); ++i) {
    if (store.entries()[i].shape.rank() == 2) matrices_.push_back({static_cast<int>(i)});
  }
}

void Transposes::refresh(std::int64_t i) {
  const Parameter p = matrices_[static_cast<std::size_t>(i)];
  const Shape& shape = store_->entry(p).shape;
  const std::int64_t out = shape[0], in = shape[1];
  kernels::transpose({values_.data() + store_->entry(p).offset, in, out, out},
                     {store_->values(p).data(), out, in, in});
}

ConstMatrixView Transposes::of(Parameter p) const {
  if (std::ranges::none_of(matrices_, [p](Parameter q) { return q.index == p.index; })) return {};
  const Shape& shape = store_->entry(p).shape;
  return {values_.data() + store_->entry(p).offset, shape[1], shape[0], shape[0]};
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
