// The divisor of the sum of losses.
#include <cmath>
#include <numeric>
#include <vector>

#include "catch.h"
#include "thimble/engine/ops.h"

using namespace thimble;

namespace {

// Returns the loss of three rows, of which two have a label, and then its gradients.
std::vector<Real> loss_and_gradients(std::int64_t normalizer) {
  Tensor values({3, 4});
  for (std::size_t i = 0; i < 12; ++i)
    values.values()[i] = static_cast<Real>(std::sin(static_cast<double>(i)));
  Tape tape;
  const Var logits = tape.variable(values);
  const std::vector<std::int32_t> labels{1, -1, 3};
  const Var loss = cross_entropy(logits, labels, {.normalizer = normalizer});
  tape.backward(loss);
  std::vector<Real> result{loss.item()};
  result.insert(result.end(), logits.grad().data, logits.grad().data + 12);
  return result;
}

}  // namespace

TEST_CASE("a loss is divided by its normalizer, or by the number of labels", "[ops]") {
  const std::vector<Real> sum = loss_and_gradients(1), mean = loss_and_gradients(0),
                          part = loss_and_gradients(8);
  CHECK(sum[0] > 1);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(mean[i], WithinRel(sum[i] / 2, Real(1e-5)));
    CHECK_THAT(part[i], WithinRel(sum[i] / 8, Real(1e-5)));
  }
}
