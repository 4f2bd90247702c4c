// Reverse-mode differentiation. A step is recorded as an append-only list of nodes; the order of creation is
// already a topological order, so backward() is one loop from the last node to the first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "thimble/engine/arena.h"
#include "thimble/engine/op_cost.h"
#include "thimble/engine/parameter.h"
#include "thimble/engine/profile.h"
#include "thimble/engine/tensor.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class Tape;

// A handle on one value of a tape. Cheap to copy. Its functions throw Error after the tape was rewound, and
// when it is empty.
class Var {
 public:
  Var() = default;

  Tape& tape() const;
  const Shape& shape() const;
  MatrixView value() const;  // rows: all dimensions but the last
  MatrixView grad() const;   // same shape, zero before the first addition; throws Error if it is not required
  // For ops. Returns the gradient that a backward kernel adds to. Before the first addition it is
  // uninitialized, and the kernel must overwrite all of it. A view without data where no gradient is
  // required.
  GradientView grad_accumulator() const;
  // For ops whose kernels add only to some elements. Returns the gradient, zero before the first addition.
  GradientView zeroed_grad_accumulator() const;
  // Returns the packed form of a parameter, for ops; without data if the tape was not given any.
  PackedWeight packed() const;
  bool needs_grad() const;                      // whether a gradient is required here
  bool operator==(const Var&) const = default;  // whether they are one result
  Real item() const;                            // the value of a one-element Var; throws ShapeError otherwise

 private:
  friend class Tape;
  Var(Tape* tape, std::uint32_t index, std::uint32_t generation)
      : tape_(tape), index_(index), generation_(generation) {}

  Tape* tape_ = nullptr;
  std::uint32_t index_ = 0;
  std::uint32_t generation_ = 0;
};

// A recorded step: an append-only list of nodes.
class Tape {
 public:
  enum class Mode {
    training,   // records what backward() needs
    inference,  // values only
    plan,       // no values: records ops without running them, and counts their memory and FLOPs
  };

  explicit Tape(Mode mode = Mode::training) : mode_(mode) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Mode mode() const { return mode_; }

  // Removes all nodes and releases their memory; their Vars become invalid.
  void rewind();

  // Makes parameter() read from `store`, and backward() add to `gradients`, which has the layout of the
  // store; with an empty span parameters are constants. Packed weights, of the same store and up to date, make
  // projections faster.
  void bind(const ParameterStore& store, std::span<Real> gradients, const PackedWeights* packed = nullptr);
  // Binds a store to a planning tape, which reads no values, with or without gradients.
  void bind_plan(const ParameterStore& store, bool gradients);

  // Record leaves. `variable` has a gradient, and `parameter` if the tape is bound to gradients; the others
  // have none. `constant` and `variable` copy. `buffer` reads as many values as the shape has elements in
  // place, so they must outlive the nodes.
  Var constant(const Tensor& value);
  Var variable(const Tensor& value);
  Var parameter(Parameter p);
  Var zeros(const Shape& shape);
  Var buffer(const Shape& shape, const Real* values);

  // Implements the free function record() below.
  template <class Forward, class Backward>
  Var record(const char* op, const Shape& shape, std::span<const Var> inputs, const Forward& forward,
             const Backward& backward, const Flops& flops) {
    static_assert(std::is_trivially_destructible_v<Backward> && alignof(Backward) <= kAlignment);
    const Var y = push(op, shape, inputs);
    if (mode_ == Mode::plan) {
      plan(y, inputs, sizeof(Backward), flops);
      return y;
    }
    forward(y);
    if (Node& node = at(y); node.needs_grad) {
      node.closure = new (arena_.allocate(sizeof(Backward))) Backward(backward);
      node.run = [](void* closure, Var result) { (*static_cast<Backward*>(closure))(result); };
    }
    return y;
  }

  // For ops. Return uninitialized memory that lives as long as the nodes. The result of scratch() has no data
  // on a planning tape.
  MatrixView scratch(std::int64_t rows, std::int64_t cols);
  template <class T>
  std::span<T> allocate(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(arena_.allocate(count * sizeof(T))), count};
  }
  // For ops. Returns a copy that lives as long as the nodes.
  template <class T>
  std::span<const T> keep(std::span<const T> values) {
    const std::span<T> copy = allocate<T>(values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }

  // The gradients that can be read after backward(). With `leaves` the memory of the others is reused as soon
  // as they have been propagated, which keeps it in cache.
  enum class RetainGrads { all, leaves };

  // A function that backward() calls with each parameter of the tape once it adds no more to its gradient.
  using PostAccumulateGradHook = std::function<void(Parameter)>;

  // The gradient of a node is in one of three states, which grad_accumulator() shows to an op:
  //   state              its memory                                        the op
  //   not required       none: no variable and no bound parameter leads     adds nothing
  //                      to the node
  //   nothing added yet  unset (`uninitialized`)                            overwrites every element
  //   accumulating       the sum so far; bound parameters start here       adds

  // Adds d(sum(loss * seed))/dx to the gradient of every leaf x that requires one, and sets the gradients of
  // the other nodes. `loss` may have any shape; without a seed it must have one element, whose seed is
  // `scale`. Throws ShapeError otherwise, Error on an inference tape.
  void backward(Var loss, Real scale = 1, RetainGrads retain = RetainGrads::all,
                const PostAccumulateGradHook& hook = {});
  void backward(Var y, ConstMatrixView seed, RetainGrads retain = RetainGrads::all,
                const PostAccumulateGradHook& hook = {});

  // Adds the time of ops, forward and backward, to the profile from now on; null: none.
  struct OpProfile {
    Profile forward, backward;
  };
  void set_profile(OpProfile* profile) { profile_ = profile; }

  // Sets the layer of nodes that are recorded from now on, such as "encoder.layers.0"; it must outlive them.
  void set_layer(const char* layer) { layer_ = layer; }
  const char* layer() const { return layer_; }

  // The origin of non-finite numbers: in forward order the first node with a non-finite value, or, after
  // backward(), the last node with a non-finite gradient. Empty when all are finite.
  struct NonFinite {
    const char* op = nullptr;
    const char* layer = nullptr;
    std::int64_t column = 0;  // of the number, in the last dimension
    explicit operator bool() const { return op != nullptr; }
  };
  NonFinite first_non_finite_value() const;
  NonFinite first_non_finite_gradient() const;

  std::size_t nodes() const { return nodes_.size(); }
  std::size_t bytes() const { return arena_.used(); }  // allocated, or planned, since the last rewind
  bool used(Parameter p) const;  // whether parameter(p) was called since the last rewind

  // Returns the cost of every op in every layer of a planning tape, in the order of first calls. The bytes
  // add up to bytes(), and include gradients once backward() was called.
  std::vector<OpCost> costs() const;

 private:
  friend class Var;
  struct Node {
    Shape shape;
    Real* value = nullptr;
    Real* grad = nullptr;
    void (*run)(void*, Var) = nullptr;
    void* closure = nullptr;
    const char* op = nullptr;
    const char* layer = nullptr;
    int parameter = -1;
    bool needs_grad = false;
  };

  Node& at(const Var& v);
  Var push(const char* op, const Shape& shape, std::span<const Var> inputs);
  Var push(const char* op, const Shape& shape, Real* value, bool needs_grad);
  Var leaf(const char* op, const Tensor& value, bool needs_grad);
  Real* reals(std::int64_t count);
  void plan(Var y, std::span<const Var> inputs, std::size_t closure_bytes, const Flops& flops);
  void plan_backward(RetainGrads retain);
  static NonFinite non_finite(const Node& node, std::int64_t at);
  GradientView grad_accumulator(Node& node);
  void recycle(Node& node);

  Mode mode_;
  Arena arena_;
  std::vector<Node> nodes_;
  const char* layer_ = "";
  OpProfile* profile_ = nullptr;
  std::uint32_t generation_ = 0;
  const ParameterStore* store_ = nullptr;
  std::span<Real> gradients_;
  const PackedWeights* packed_ = nullptr;
  std::vector<std::int64_t> parameter_nodes_;  // node of each parameter, or -1
  struct FreeBuffer {
    std::int64_t size;
    Real* memory;
  };
  std::vector<FreeBuffer> free_list_;  // gradient buffers to reuse

  // A recorded op of a planning tape, in place of closures.
  struct Planned {
    Var result;
    std::vector<Var> inputs;
    Flops flops;
    std::size_t bytes;
    double traffic;
  };
  std::vector<Planned> planned_;
  std::size_t planned_bytes_ = 0;  // of all planned ops
  bool plans_gradients_ = false;
};

// Records y = op(inputs), of that shape, on the tape of the inputs, and returns y. forward(y) runs at once
// and writes y's value, which is uninitialized. backward(y) runs when y's gradient is complete and adds to
// the gradients of the inputs; it is dropped where no input requires one. It is stored in the tape's memory,
// so it may hold only trivially destructible values, and it must take a gradient accumulator of every input,
// as a planning tape does. `op` must outlive the tape. There must be an input. `flops` are those of the op's
// matrix products.
template <class Forward, class Backward>
Var record(const char* op, const Shape& shape, std::span<const Var> inputs, const Forward& forward,
           const Backward& backward, const Flops& flops = {}) {
  return inputs[0].tape().record(op, shape, inputs, forward, backward, flops);
}
template <class Forward, class Backward>
Var record(const char* op, const Shape& shape, std::initializer_list<Var> inputs, const Forward& forward,
           const Backward& backward, const Flops& flops = {}) {
  return record(op, shape, std::span<const Var>(inputs.begin(), inputs.size()), forward, backward, flops);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
