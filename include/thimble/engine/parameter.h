// Parameters are named parts of one flat buffer; gradients, optimizer moments and checkpoints have the same
// layout.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/gemm.h"
#include "thimble/engine/random.h"
#include "thimble/engine/tensor.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A handle on a parameter of a store.
struct Parameter {
  int index = -1;
};

// The content of a store: values, or only names and shapes, as for a planning tape.
enum class Storage { values, shapes };

// The parameters of a model.
class ParameterStore {
 public:
  explicit ParameterStore(Storage storage = Storage::values) : storage_(storage) {}

  struct Entry {
    std::string name;
    Shape shape;
    std::size_t offset;  // of the first element in the flat buffer
    std::size_t size() const { return static_cast<std::size_t>(shape.elements()); }
  };

  // Adds a parameter of zeros. Throws Error when the name is taken.
  Parameter add(std::string name, Shape shape);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& entry(Parameter p) const { return entries_[static_cast<std::size_t>(p.index)]; }
  std::size_t size() const { return size_; }  // elements of the flat buffer, padding included
  std::size_t count() const;                  // elements of all parameters

  // The functions below need values.
  bool holds_values() const { return storage_ == Storage::values; }
  std::span<Real> values() { return values_; }
  std::span<const Real> values() const { return values_; }
  std::span<Real> values(Parameter p) { return slice(values(), p); }
  std::span<const Real> values(Parameter p) const { return slice(values(), p); }

  // Returns the part of a buffer with this layout that belongs to one parameter.
  template <class T>
  std::span<T> slice(std::span<T> flat, Parameter p) const {
    return flat.subspan(entry(p).offset, entry(p).size());
  }

  // Returns the XXH3-64 of the bytes of all parameters in order, as 16 hexadecimal digits.
  std::string hash() const;

 private:
  Storage storage_;
  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  AlignedVector<Real> values_;
};

// A weight (O, I) as the right operand of linear's forward pass, W^T (I, O), and of its backward pass, W.
// Without data: not packed.
struct PackedWeight {
  kernels::PackedView forward, backward;
};

// The matrices of a store, packed once a step, by refresh(), in place of at every product.
class PackedWeights {
 public:
  explicit PackedWeights(const ParameterStore& store);

  // Returns the number of matrices; refresh(i), i in 0 .. count()-1, packs one of them.
  std::int64_t count() const { return std::ssize(matrices_); }
  void refresh(std::int64_t i);

  // Returns a parameter that is no matrix without data.
  PackedWeight of(Parameter p) const { return packed_[static_cast<std::size_t>(p.index)]; }

  // Returns the number of elements that the matrices of a store take.
  static std::size_t size(const ParameterStore& store);

 private:
  const ParameterStore* store_;
  std::vector<Parameter> matrices_;
  std::vector<PackedWeight> packed_;  // by parameter
  AlignedVector<Real> values_;
};

// Sets initial values that are uniform in [-bound, bound]. Each draw depends on (seed, parameter, element)
// alone.
void init_uniform(ParameterStore&, Parameter, std::uint64_t seed, double bound);
// Sets initial values that are normal with mean 0. Each draw depends on (seed, parameter, element) alone.
void init_normal(ParameterStore&, Parameter, std::uint64_t seed, double standard_deviation);
// Sets every element to `value`.
void init_constant(ParameterStore&, Parameter, Real value);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
