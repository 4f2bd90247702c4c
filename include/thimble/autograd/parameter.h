// Parameters live in one flat buffer, one after another; gradients, optimizer moments and checkpoints have
// the same layout. A Parameter is a named window into it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/random.h"
#include "thimble/tensor/tensor.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Which parameter; only the store that made it can say more.
struct Parameter {
  int index = -1;
};

// Whether a store holds values, or names and shapes alone, as for a planning tape.
enum class Storage { values, shapes };

class ParameterStore {
 public:
  explicit ParameterStore(Storage storage = Storage::values) : storage_(storage) {}

  struct Entry {
    std::string name;
    Shape shape;
    std::size_t offset;  // of the first element in the flat buffer
    std::size_t size() const { return static_cast<std::size_t>(shape.elements()); }
  };

  // A new parameter, zero. Throws Error when the name is taken.
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

  // The part of any buffer with this layout that belongs to one parameter.
  template <class T>
  std::span<T> slice(std::span<T> flat, Parameter p) const {
    return flat.subspan(entry(p).offset, entry(p).size());
  }

  // XXH3-64 over every parameter's bytes in order, as 16 hexadecimal digits.
  std::string hash() const;

 private:
  Storage storage_;
  std::vector<Entry> entries_;
  std::size_t size_ = 0;
  AlignedVector<Real> values_;
};

// The transposes of a store's matrices, for products that read them that way (kernels/linear.h): made once a
// step in place of once a product. They are those of the last refresh.
class Transposes {
 public:
  explicit Transposes(const ParameterStore& store);

  // Matrices that have one; refresh(i), i in 0 .. count()-1, makes one of them anew.
  std::int64_t count() const { return static_cast<std::int64_t>(matrices_.size()); }
  void refresh(std::int64_t i);

  // The transpose (I, O) of a matrix (O, I), or a view without data.
  ConstMatrixView of(Parameter p) const;

 private:
  const ParameterStore* store_;
  std::vector<Parameter> matrices_;
  AlignedVector<Real> values_;  // in the store's layout
};

// Initial values; each draw depends on (seed, parameter, element) alone.
// Uniform in [-bound, bound].
void init_uniform(ParameterStore&, Parameter, std::uint64_t seed, double bound);
// Normal with mean 0.
void init_normal(ParameterStore&, Parameter, std::uint64_t seed, double standard_deviation);
void init_constant(ParameterStore&, Parameter, Real value);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
