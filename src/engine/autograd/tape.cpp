#include "thimble/engine/tape.h"

#include <cmath>

#include "engine/kernels/elementwise.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns the index of the first number that is not finite, or -1.
std::int64_t first_non_finite(const Real* values, const Shape& shape) {
  const Real* const end = values + shape.elements();
  const Real* bad = std::find_if(values, end, [](Real x) { return !std::isfinite(x); });
  return bad == end ? -1 : bad - values;
}

// The address of every gradient on a planning tape.
Real planned_gradient;

MatrixView as_matrix(Real* data, const Shape& shape) {
  return {data, shape.rows(), shape.last(), shape.last()};
}

}  // namespace

Tape& Var::tape() const {
  require<Error>(tape_ != nullptr, "Var is empty");
  return *tape_;
}

const Shape& Var::shape() const { return tape().at(*this).shape; }

MatrixView Var::value() const {
  Tape::Node& node = tape().at(*this);
  return as_matrix(node.value, node.shape);
}

MatrixView Var::grad() const {
  require<Error>(needs_grad(), "{}: this value does not require a gradient", tape().at(*this).op);
  return zeroed_grad_accumulator();
}

GradientView Var::grad_accumulator() const { return tape().grad_accumulator(tape().at(*this)); }

GradientView Var::zeroed_grad_accumulator() const {
  const GradientView sum = grad_accumulator();
  if (sum.uninitialized) std::fill_n(sum.data, sum.elements(), Real{0});
  return GradientView(sum, false);
}

PackedWeight Var::packed() const {
  const Tape::Node& node = tape().at(*this);
  return node.parameter < 0 || tape().packed_ == nullptr ? PackedWeight{}
                                                         : tape().packed_->of({node.parameter});
}

bool Var::needs_grad() const { return tape().at(*this).needs_grad; }

Real Var::item() const {
  require<ShapeError>(shape().elements() == 1, "item: shape {} does not have exactly one element", shape());
  return *value().data;
}

Tape::Node& Tape::at(const Var& v) {
  require<Error>(v.tape_ == this && v.generation_ == generation_ && v.index_ < nodes_.size(),
                 "tape: this Var belongs to another tape, or was invalidated by rewind()");
  return nodes_[v.index_];
}

void Tape::rewind() {
  nodes_.clear();
  free_list_.clear();
  planned_.clear();
  planned_bytes_ = 0;
  arena_.rewind();
  std::ranges::fill(parameter_nodes_, -1);
  layer_ = "";
  ++generation_;
}

void Tape::bind(const ParameterStore& store, std::span<Real> gradients, const PackedWeights* packed) {
  require<ShapeError>(gradients.empty() || gradients.size() == store.size(),
                      "tape: the gradient buffer has {} elements, the parameter store {}", gradients.size(),
                      store.size());
  store_ = &store;
  gradients_ = gradients;
  packed_ = packed;
  parameter_nodes_.assign(store.entries().size(), -1);
}

void Tape::bind_plan(const ParameterStore& store, bool gradients) {
  bind(store, {});
  plans_gradients_ = gradients;
}

Var Tape::push(const char* op, const Shape& shape, Real* value, bool needs_grad) {
  Node node;
  node.shape = shape;
  node.value = value;
  node.op = op;
  node.layer = layer_;
  node.needs_grad = needs_grad && mode_ != Mode::inference;
  nodes_.push_back(node);
  return {this, static_cast<std::uint32_t>(nodes_.size() - 1), generation_};
}

Var Tape::push(const char* op, const Shape& shape, std::span<const Var> inputs) {
  if (profile_ != nullptr) profile_->forward.start(op);
  bool needs_grad = false;
  for (const Var& input : inputs) needs_grad |= at(input).needs_grad;
  return push(op, shape, reals(shape.elements()), needs_grad);
}

Var Tape::leaf(const char* op, const Tensor& value, bool needs_grad) {
  Real* copy = reals(value.shape().elements());
  if (mode_ != Mode::plan) std::ranges::copy(value.values(), copy);
  return push(op, value.shape(), copy, needs_grad);
}

Var Tape::constant(const Tensor& value) { return leaf("constant", value, false); }

Var Tape::variable(const Tensor& value) { return leaf("variable", value, true); }

Var Tape::zeros(const Shape& shape) {
  Real* value = reals(shape.elements());
  if (mode_ != Mode::plan) std::fill_n(value, shape.elements(), Real{0});
  return push("zeros", shape, value, false);
}

// The const_cast is safe: ops write only to values that record() allocated.
Var Tape::buffer(const Shape& shape, const Real* values) {
  return push("buffer", shape, const_cast<Real*>(values), false);
}

Var Tape::parameter(Parameter p) {
  require<Error>(store_ != nullptr, "tape: bind() a parameter store before using its parameters");
  std::int64_t& index = parameter_nodes_.at(static_cast<std::size_t>(p.index));
  if (index < 0) {
    const ParameterStore::Entry& entry = store_->entry(p);
    const bool plans = mode_ == Mode::plan;
    Real* value = plans ? nullptr : const_cast<Real*>(store_->values().data()) + entry.offset;
    const Var v =
        push(entry.name.c_str(), entry.shape, value, plans ? plans_gradients_ : !gradients_.empty());
    at(v).parameter = p.index;
    if (at(v).needs_grad) at(v).grad = plans ? &planned_gradient : gradients_.data() + entry.offset;
    index = v.index_;
  }
  return {this, static_cast<std::uint32_t>(index), generation_};
}

bool Tape::used(Parameter p) const { return parameter_nodes_.at(static_cast<std::size_t>(p.index)) >= 0; }

Real* Tape::reals(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(Real);
  if (mode_ != Mode::plan) return static_cast<Real*>(arena_.allocate(bytes));
  arena_.count(bytes);
  return nullptr;
}

MatrixView Tape::scratch(std::int64_t rows, std::int64_t cols) {
  return {reals(rows * cols), rows, cols, cols};
}

GradientView Tape::grad_accumulator(Node& node) {
  if (!node.needs_grad) return {};
  const bool uninitialized = node.grad == nullptr;
  if (uninitialized) {
    const std::int64_t size = node.shape.elements();
    const auto free = std::ranges::find(free_list_, size, &FreeBuffer::size);
    if (free != free_list_.end()) {
      node.grad = free->memory;
      *free = free_list_.back();
      free_list_.pop_back();
    } else {
      node.grad = reals(size);
      if (mode_ == Mode::plan) node.grad = &planned_gradient;
    }
  }
  return {as_matrix(node.grad, node.shape), uninitialized};
}

void Tape::recycle(Node& node) {
  free_list_.push_back({node.shape.elements(), node.grad});
  node.grad = nullptr;
}

void Tape::backward(Var loss, Real scale, RetainGrads retain, const PostAccumulateGradHook& hook) {
  require<ShapeError>(loss.shape().elements() == 1,
                      "backward: the loss has shape {}, not one element; give a seed", loss.shape());
  backward(loss, ConstMatrixView{&scale, 1, 1, 1}, retain, hook);
}

void Tape::backward(Var y, ConstMatrixView seed, RetainGrads retain, const PostAccumulateGradHook& hook) {
  require<Error>(mode_ != Mode::inference, "backward: this tape is in inference mode");
  if (profile_ != nullptr) profile_->forward.stop();
  for (Node& node : nodes_) {
    if (node.run != nullptr) node.grad = nullptr;  // of an earlier call; only leaves accumulate over calls
  }
  require<Error>(y.needs_grad(), "{}: this value does not require a gradient", at(y).op);
  const GradientView dy = y.grad_accumulator();
  require<ShapeError>(seed.rows == dy.rows && seed.cols == dy.cols,
                      "backward: seed ({}, {}) must have the shape {} of the result", seed.rows, seed.cols,
                      y.shape());
  if (mode_ == Mode::plan) return plan_backward(retain);
  kernels::accumulate(dy, seed);
  // Closures request only gradients of earlier nodes, and add no nodes. A parameter comes before all nodes that
  // read it.
  for (std::size_t i = y.index_ + 1; i-- > 0;) {
    Node& node = nodes_[i];
    if (node.parameter >= 0 && hook) hook({node.parameter});
    if (node.run == nullptr || node.grad == nullptr) continue;
    if (profile_ != nullptr) profile_->backward.start(node.op);
    node.run(node.closure, Var(this, static_cast<std::uint32_t>(i), generation_));
    if (retain == RetainGrads::leaves) recycle(node);
  }
  if (profile_ != nullptr) profile_->backward.stop();
}

void Tape::plan(Var y, std::span<const Var> inputs, std::size_t closure_bytes, const Flops& flops) {
  const bool needs_grad = at(y).needs_grad;
  if (needs_grad) arena_.count(closure_bytes);
  const std::size_t bytes = arena_.used() - planned_bytes_;
  // Backward reads a gradient as large as the result, and what was saved, and writes the gradients of inputs.
  double traffic = static_cast<double>(bytes) * (needs_grad ? 2 : 1);
  for (const Var& input : inputs)
    traffic += static_cast<double>(input.shape().elements()) * sizeof(Real) * (input.needs_grad() ? 2 : 1);
  planned_.push_back({.result = y,
                      .inputs{inputs.begin(), inputs.end()},
                      .flops{flops.forward, needs_grad ? flops.backward : 0},
                      .bytes = bytes,
                      .traffic = traffic});
  planned_bytes_ = arena_.used();
}

// Requests the gradients that the closures of a training tape request.
void Tape::plan_backward(RetainGrads retain) {
  for (std::size_t i = planned_.size(); i-- > 0;) {
    Planned& op = planned_[i];
    Node& node = at(op.result);
    if (node.grad == nullptr) continue;
    for (const Var& input : op.inputs) grad_accumulator(at(input));
    op.bytes += arena_.used() - planned_bytes_;
    planned_bytes_ = arena_.used();
    if (retain == RetainGrads::leaves) recycle(node);
  }
}

std::vector<OpCost> Tape::costs() const {
  std::vector<OpCost> all;
  for (const Planned& op : planned_) {
    const Node& node = nodes_[op.result.index_];
    auto cost =
        std::ranges::find_if(all, [&](const OpCost& c) { return c.layer == node.layer && c.op == node.op; });
    if (cost == all.end()) cost = all.insert(cost, {.layer = node.layer, .op = node.op, .flops = {}});
    ++cost->calls;
    cost->bytes += static_cast<double>(op.bytes);
    cost->traffic += op.traffic;
    cost->flops.forward += op.flops.forward;
    cost->flops.backward += op.flops.backward;
  }
  return all;
}

Tape::NonFinite Tape::first_non_finite_value() const {
  for (const Node& node : nodes_) {
    if (const std::int64_t at = first_non_finite(node.value, node.shape); at >= 0)
      return non_finite(node, at);
  }
  return {};
}

Tape::NonFinite Tape::first_non_finite_gradient() const {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (node.grad == nullptr) continue;
    if (const std::int64_t at = first_non_finite(node.grad, node.shape); at >= 0) return non_finite(node, at);
  }
  return {};
}

Tape::NonFinite Tape::non_finite(const Node& node, std::int64_t at) {
  return {node.op, node.layer, at % node.shape.last()};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
