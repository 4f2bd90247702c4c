#include "thimble/engine/gradcheck.h"

#include <cmath>
#include <cstring>

#include "engine/autograd/comparison.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Evaluations of f, of its loss and of the gradients of its inputs.
class OpCheck {
 public:
  OpCheck(const GradcheckFunction& f, std::span<const GradcheckInput> inputs, std::uint64_t seed)
      : f_(f), random_(seed, Stream::gradcheck) {
    for (const GradcheckInput& input : inputs) values_.push_back(input.value);
  }

  double loss() {
    const Var y = run();
    double sum = 0;
    const Real* values = y.value().data;
    for (std::int64_t i = 0; i < y.shape().elements(); ++i)
      sum += static_cast<double>(values[i]) * cotangent(i);
    return sum;
  }

  // Returns the analytic gradient of every input, and sets `fault` where an input was changed or a gradient
  // overwritten.
  std::vector<Tensor> gradients(std::vector<std::string>& fault) {
    const Var y = run();
    std::vector<Tensor> start, once;
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      const MatrixView grad = vars_[k].grad();
      for (std::int64_t i = 0; i < grad.elements(); ++i) {
        grad.data[i] = static_cast<Real>(
            random_.normal(static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(k), 2));
      }
      start.push_back(copy(vars_[k], grad));
    }
    tape_.backward(y, cotangents(y).matrix(), Tape::RetainGrads::leaves);
    for (std::size_t k = 0; k < vars_.size(); ++k) once.push_back(copy(vars_[k], vars_[k].grad()));
    fault.assign(vars_.size(), "");
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      for (std::size_t i = 0; i < once[k].values().size(); ++i) once[k].values()[i] -= start[k].values()[i];
      if (std::memcmp(vars_[k].value().data, values_[k].data(), values_[k].values().size_bytes()) != 0) {
        fault[k] = "the op changed its input";
      }
    }
    return second_run(once, start, fault);
  }

  Tensor& value(std::size_t k) { return values_[k]; }

 private:
  Var run() {
    tape_.rewind();
    vars_.clear();
    for (const Tensor& value : values_) vars_.push_back(tape_.variable(value));
    return f_(tape_, vars_);
  }

  // Runs backward again from gradients that start at zero, which must give the same. Returns these gradients, which
  // lose no digits.
  std::vector<Tensor> second_run(const std::vector<Tensor>& once, const std::vector<Tensor>& start,
                                 std::vector<std::string>& fault) {
    std::vector<Tensor> gradients;
    const Var y = run();
    tape_.backward(y, cotangents(y).matrix(), Tape::RetainGrads::leaves);
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      gradients.push_back(copy(vars_[k], vars_[k].grad()));
      const std::span<const Real> zero_started = gradients[k].values();
      for (std::size_t i = 0; i < once[k].values().size(); ++i) {
        const double size = std::max({1.0, std::abs(static_cast<double>(zero_started[i])),
                                      std::abs(static_cast<double>(start[k].values()[i]))});
        const double gap =
            std::abs(static_cast<double>(once[k].values()[i]) - static_cast<double>(zero_started[i]));
        if (!(gap <= 1e-9 * size) && fault[k].empty())
          fault[k] = "backward overwrites the gradient instead of adding to it";
      }
    }
    return gradients;
  }

  static Tensor copy(Var v, MatrixView grad) {
    return Tensor(v.shape(), std::span<const Real>(grad.data, static_cast<std::size_t>(grad.elements())));
  }

  double cotangent(std::int64_t i) const {
    return 2 * random_.uniform(static_cast<std::uint64_t>(i), 0, 1) - 1;
  }

  Tensor cotangents(Var y) const {
    Tensor all(y.shape());
    for (std::int64_t i = 0; i < y.shape().elements(); ++i) all.data()[i] = static_cast<Real>(cotangent(i));
    return all;
  }

  const GradcheckFunction& f_;
  Random random_;
  Tape tape_;
  std::vector<Tensor> values_;
  std::vector<Var> vars_;
};

void fail(GradcheckResult& result, const std::string& why) {
  result.verdict = GradcheckVerdict::wrong;
  result.reason = why;
}

double comparisons(const ParameterStore& store) {
  std::int64_t sum = 0;
  for (const auto& entry : store.entries())
    sum += Comparison::planned(static_cast<std::int64_t>(entry.size()));
  return static_cast<double>(sum);
}

}  // namespace

std::vector<GradcheckResult> gradcheck(const std::string& op, const GradcheckFunction& f,
                                       std::span<const GradcheckInput> inputs, std::uint64_t seed) {
  OpCheck check(f, inputs, seed);
  std::vector<std::string> fault;
  const std::vector<Tensor> gradients = check.gradients(fault);
  std::vector<ComparedTensor> tensors;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    tensors.push_back(
        {check.value(k).values(), gradients[k].values(), inputs[k].value.shape(), inputs[k].zero_gradient});
  Comparison comparison([&] { return check.loss(); }, tensors, Random(seed, Stream::gradcheck));
  std::vector<GradcheckResult> results;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    GradcheckResult result = comparison.compare(k);
    result.op = op;
    result.input = inputs[k].name;
    if (!fault[k].empty()) fail(result, fault[k]);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<GradcheckResult> gradcheck(ParameterStore& store, const LossFunction& loss, std::uint64_t seed,
                                       const std::function<void(double share)>& advance) {
  Tape tape;
  AlignedVector<Real> gradients(store.size());
  tape.bind(store, gradients);
  tape.backward(loss(tape), 1, Tape::RetainGrads::leaves);

  Tape forward(Tape::Mode::inference);
  forward.bind(store, {});
  const auto value = [&] {
    forward.rewind();
    return static_cast<double>(loss(forward).item());
  };
  std::vector<ComparedTensor> tensors;
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p)
    tensors.push_back({store.values(Parameter{p}), store.slice(std::span<const Real>(gradients), {p}),
                       store.entry({p}).shape});
  const double share = 1 / comparisons(store);
  Comparison comparison(value, tensors, Random(seed, Stream::gradcheck));
  std::vector<GradcheckResult> results;
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p) {
    GradcheckResult result = comparison.compare(static_cast<std::size_t>(p), [&] { advance(share); });
    result.op = "model";
    result.input = store.entry({p}).name;
    if (!tape.used({p})) fail(result, "the loss never reaches this parameter");
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
