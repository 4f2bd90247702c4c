#include "thimble/autograd/tape.h"

#include <cmath>

#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// The first number that is not finite, or -1.
std::int64_t first_bad(const Real* values, const Shape& shape) {
  const Real* const end = values + shape.elements();
  const Real* bad = std::find_if(values, end, [](Real x) { return !std::isfinite(x); });
  return bad == end ? -1 : bad - values;
}

MatrixView as_matrix(Real* data, const Shape& shape) {
  return {data, shape.rows(), shape.last(), shape.last()};
}

}  // namespace

Tape& Var::tape() const {
  require<Error>(tape_ != nullptr, "var: used before an op has made it");
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

ConstMatrixView Var::transposed() const {
  const Tape::Node& node = tape().at(*this);
  const bool known = node.parameter >= 0 && tape().transposes_ != nullptr;
  return known ? tape().transposes_->of({node.parameter}) : ConstMatrixView{};
}

bool Var::needs_grad() const { return tape().at(*this).needs_grad; }

Real Var::item() const {
  require<ShapeError>(shape().elements() == 1, "item: shape {} does not have exactly one element", shape());
  return *value().data;
}

Tape::Node& Tape::at(const Var& v) {
  require<Error>(v.tape_ == this && v.generation_ == generation_ && v.index_ < nodes_.size(),
                 "tape: this Var was made before the last rewind or on another tape");
  return nodes_[v.index_];
}

void Tape::rewind() {
  nodes_.clear();
  spares_.clear();
  arena_.rewind();
  std::ranges::fill(parameter_nodes_, -1);
  layer_ = "";
  ++generation_;
}

void Tape::bind(const ParameterStore& store, std::span<Real> gradients, const Transposes* transposes) {
  require<ShapeError>(gradients.empty() || gradients.size() == store.size(),
                      "tape: a gradient buffer of {} elements for {} parameters", gradients.size(),
                      store.size());
  store_ = &store;
  gradients_ = gradients;
  transposes_ = transposes;
  parameter_nodes_.assign(store.entries().size(), -1);
}

Var Tape::push(const char* op, const Shape& shape, Real* value, bool needs_grad) {
  Node node;
  node.shape = shape;
  node.value = value;
  node.op = op;
  node.layer = layer_;
  node.needs_grad = needs_grad && mode_ == Mode::training;
  nodes_.push_back(node);
  return {this, static_cast<std::uint32_t>(nodes_.size() - 1), generation_};
}

Var Tape::push(const char* op, const Shape& shape, std::span<const Var> inputs) {
  if (profile_ != nullptr) profile_->forward.start(op);
  bool needs_grad = false;
  for (const Var& input : inputs) needs_grad |= at(input).needs_grad;
  return push(op, shape, reals(shape.elements()), needs_grad);
}

Var Tape::constant(const Tensor& value) {
  Var v = push("constant", value.shape(), reals(value.shape().elements()), false);
  std::ranges::copy(value.values(), v.value().data);
  return v;
}

Var Tape::variable(const Tensor& value) {
  Var v = push("variable", value.shape(), reals(value.shape().elements()), true);
  std::ranges::copy(value.values(), v.value().data);
  return v;
}

Var Tape::zeros(const Shape& shape) {
  Real* value = reals(shape.elements());
  std::fill_n(value, shape.elements(), Real{0});
  return push("zeros", shape, value, false);
}

Var Tape::parameter(Parameter p) {
  require<Error>(store_ != nullptr, "tape: bind() a parameter store before using its parameters");
  std::int64_t& index = parameter_nodes_.at(static_cast<std::size_t>(p.index));
  if (index < 0) {
    const ParameterStore::Entry& entry = store_->entry(p);
    // Ops write only into values that record() made, so a parameter's stay as they are.
    Real* value = const_cast<Real*>(store_->values().data()) + entry.offset;
    const Var v = push(entry.name.c_str(), entry.shape, value, !gradients_.empty());
    at(v).parameter = p.index;
    if (at(v).needs_grad) at(v).grad = gradients_.data() + entry.offset;
    index = v.index_;
  }
  return {this, static_cast<std::uint32_t>(index), generation_};
}

bool Tape::used(Parameter p) const { return parameter_nodes_.at(static_cast<std::size_t>(p.index)) >= 0; }

MatrixView Tape::scratch(std::int64_t rows, std::int64_t cols) {
  return {reals(rows * cols), rows, cols, cols};
}

GradientView Tape::grad_accumulator(Node& node) {
  if (!node.needs_grad) return {};
  const bool uninitialized = node.grad == nullptr;
  if (uninitialized) {
    const std::int64_t size = node.shape.elements();
    const auto spare = std::ranges::find(spares_, size, &Spare::size);
    if (spare != spares_.end()) {
      node.grad = spare->memory;
      *spare = spares_.back();
      spares_.pop_back();
    } else {
      node.grad = reals(size);
    }
  }
  return {as_matrix(node.grad, node.shape), uninitialized};
}

void Tape::recycle(Node& node) {
  spares_.push_back({node.shape.elements(), node.grad});
  node.grad = nullptr;
}

void Tape::backward(Var loss, Real scale, Keep keep) {
  require<ShapeError>(loss.shape().elements() == 1,
                      "backward: the loss has shape {}, not one element; give a seed", loss.shape());
  backward(loss, ConstMatrixView{&scale, 1, 1, 1}, keep);
}

void Tape::backward(Var y, ConstMatrixView seed, Keep keep) {
  require<Error>(mode_ == Mode::training, "backward: this tape is in inference mode");
  if (profile_ != nullptr) profile_->forward.stop();
  for (Node& node : nodes_) {
    if (node.run != nullptr) node.grad = nullptr;  // left by an earlier call; only leaves add up over several
  }
  require<Error>(y.needs_grad(), "{}: this value does not require a gradient", at(y).op);
  const GradientView dy = y.grad_accumulator();
  require<ShapeError>(seed.rows == dy.rows && seed.cols == dy.cols,
                      "backward: seed ({}, {}) for a result of shape {}", seed.rows, seed.cols, y.shape());
  kernels::accumulate(dy, seed);
  // Closures ask only for gradients of earlier nodes, and add no nodes.
  for (std::size_t i = y.index_ + 1; i-- > 0;) {
    Node& node = nodes_[i];
    if (node.run == nullptr || node.grad == nullptr) continue;
    if (profile_ != nullptr) profile_->backward.start(node.op);
    node.run(node.closure, Var(this, static_cast<std::uint32_t>(i), generation_));
    if (keep == Keep::leaves) recycle(node);
  }
  if (profile_ != nullptr) profile_->backward.stop();
}

Tape::Culprit Tape::first_bad_value() const {
  for (const Node& node : nodes_) {
    if (const std::int64_t at = first_bad(node.value, node.shape); at >= 0) return culprit(node, at);
  }
  return {};
}

Tape::Culprit Tape::first_bad_gradient() const {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    if (node.grad == nullptr) continue;
    if (const std::int64_t at = first_bad(node.grad, node.shape); at >= 0) return culprit(node, at);
  }
  return {};
}

Tape::Culprit Tape::culprit(const Node& node, std::int64_t at) {
  return {node.op, node.layer, at % node.shape.last()};
}

}  // namespace thimble::inline THIMBLE_PRECISION
