// A benchmark case: a kernel and its naive loops on the same arguments, and what the arguments live in.
#pragma once

#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "thimble/engine/random.h"
#include "thimble/engine/tensor.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace bench {

// What a case works on. All numbers are drawn at random, also those that a kernel overwrites or adds to.
class Memory {
 public:
  MatrixView matrix(std::int64_t rows, std::int64_t cols) {
    return {numbers(rows * cols).data(), rows, cols, cols};
  }
  std::span<Real> numbers(std::int64_t count, bool positive = false) {
    AlignedVector<Real>& made = buffers_.emplace_back(static_cast<std::size_t>(count));
    const Random random(buffers_.size(), Stream::gradcheck);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = static_cast<Real>(random.normal(i));
      if (positive) made[i] = std::abs(made[i]);
    }
    return made;
  }
  std::span<const std::int32_t> tokens(std::int64_t count, std::int64_t vocabulary) {
    const Random random(0, Stream::gradcheck);
    tokens_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      tokens_[i] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary), i));
    return tokens_;
  }
  Real* scratch(std::int64_t count) {
    scratch_.resize(static_cast<std::size_t>(count));
    return scratch_.data();
  }

  using Buffers = std::vector<AlignedVector<Real>>;
  const Buffers& buffers() const { return buffers_; }
  void restore(const Buffers& saved) {
    for (std::size_t i = 0; i < saved.size(); ++i) std::ranges::copy(saved[i], buffers_[i].begin());
  }

 private:
  Buffers buffers_;
  std::vector<std::int32_t> tokens_;
  AlignedVector<Real> scratch_;
};

// Bytes that a call reads and writes, from its arguments. Backward kernels add to what they write.
struct Traffic {
  bool backward;
  double bytes = 0;

  void count(const void* data, std::int64_t elements, std::int64_t times, std::size_t size = sizeof(Real)) {
    if (data != nullptr) bytes += static_cast<double>(elements * times) * static_cast<double>(size);
  }
  void operator()(const ConstMatrixView& x) { count(x.data, x.elements(), 1); }
  void operator()(const MatrixView& x) { count(x.data, x.elements(), backward ? 2 : 1); }
  void operator()(const GradientView& x) { count(x.data, x.elements(), x.uninitialized ? 1 : 2); }
  void operator()(std::span<Real> x) { count(x.data(), std::ssize(x), 2); }
  void operator()(std::span<const Real> x) { count(x.data(), std::ssize(x), 1); }
  void operator()(std::span<const std::int32_t> x) {
    count(x.data(), std::ssize(x), 1, sizeof(std::int32_t));
  }
  void operator()(const kernels::AttentionGradients& x) { (*this)(x.v), (*this)(x.q), (*this)(x.k); }
  void operator()(const kernels::AttentionInputs& x) { (*this)(x.q), (*this)(x.k), (*this)(x.v); }
  void operator()(const kernels::AttentionPass& x) { (*this)(ConstMatrixView(x.kept.full)); }
  template <class T>
  void operator()(const T&) {}
};

// A kernel and its naive loops, bound to the same arguments.
struct Pair {
  std::function<double()> kernel, naive;  // return what the function does, or 0
  double bytes;
};

struct Case {
  std::string name;
  double flops;  // 0: the bytes count
  std::function<Pair(Memory&)> make;
};

template <class Result, class Arguments>
std::function<double()> bound(auto* function, const Arguments& arguments) {
  return [=] {
    if constexpr (std::is_void_v<Result>) {
      std::apply(function, arguments);
      return 0.0;
    } else {
      return std::apply(function, arguments);
    }
  };
}

class Cases {
 public:
  explicit Cases(std::string model) : model_(std::move(model)) {}

  // make(memory) gives the arguments of a call. Both functions must have the same signature.
  template <class Result, class... P, class Make>
  void add(const std::string& kernel_name, Result (*kernel)(P...), Result (*naive)(P...),
           const std::string& variant, double flops, const Make& make) {
    list_.push_back(
        {kernel_name + variant + '/' + model_, flops, [=](Memory& memory) {
           const std::tuple<std::decay_t<P>...> arguments = make(memory);
           Traffic traffic{kernel_name.ends_with("_backward")};
           std::apply([&](const auto&... argument) { (traffic(argument), ...); }, arguments);
           return Pair{bound<Result>(kernel, arguments), bound<Result>(naive, arguments), traffic.bytes};
         }});
  }
  std::vector<Case> take() { return std::move(list_); }

 private:
  std::string model_;
  std::vector<Case> list_;
};

}  // namespace bench
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
