// Tests of the gradient check: backward passes of whole layers with typical mistakes.
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <cmath>

#include "engine/autograd/planted.h"
#include "engine/kernels/dropout.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gelu.h"
#include "thimble/engine/gemm.h"
#include "thimble/engine/ops.h"

using namespace thimble;
using namespace thimble::planted;

namespace {

using Inputs = std::span<const Var>;

const std::vector<std::int32_t> kTokenIds{1, 3, 3, 0};
const std::vector<std::int32_t> kLabels{2, -1, 0};

// a b, both (3, 3), so that a transposed operand still fits.
Var matmul_with(Tape&, Inputs in, bool transpose_a, bool transpose_b) {
  const Var a = in[0], b = in[1];
  return record(
      "planted", {3, 3}, {a, b},
      [&](Var y) { kernels::gemm(y.value(), a.value(), kernels::Op::none, b.value(), kernels::Op::none); },
      [=](Var y) {
        using kernels::Op;
        kernels::gemm_add({a.grad(), false}, y.grad(), Op::none, b.value(),
                          transpose_b ? Op::transpose : Op::none);
        kernels::gemm_add({b.grad(), false}, a.value(), transpose_a ? Op::transpose : Op::none, y.grad(),
                          Op::none);
      });
}

// x + bias with x (4, 3): the bias gradient sums `rows` rows.
Var bias_with(Tape&, Inputs in, std::int64_t rows) {
  const Var x = in[0], bias = in[1];
  return record(
      "planted", {4, 3}, {x, bias},
      [&](Var y) {
        for (std::int64_t i = 0; i < 12; ++i)
          y.value().data[i] = x.value().data[i] + bias.value().data[i % 3];
      },
      [=](Var y) {
        for (std::int64_t i = 0; i < 12; ++i) x.grad().data[i] += y.grad().data[i];
        for (std::int64_t i = 0; i < rows * 3; ++i) bias.grad().data[i % 3] += y.grad().data[i];
      });
}

enum class RowSum { right, without_y, none };

Var softmax_with(Tape&, Var x, RowSum kind) {
  return record(
      "planted", x.shape(), {x},
      [&](Var y) { std::copy_n(softmax(x).value().data, x.value().elements(), y.value().data); },
      [=](Var y) {
        for (std::int64_t r = 0; r < y.value().rows; ++r) {
          Real sum = 0;
          for (std::int64_t j = 0; j < y.value().cols; ++j) {
            if (kind != RowSum::none)
              sum += at(y.grad(), r, j) * (kind == RowSum::right ? at(y.value(), r, j) : 1);
          }
          for (std::int64_t j = 0; j < y.value().cols; ++j)
            at(x.grad(), r, j) += at(y.value(), r, j) * (at(y.grad(), r, j) - sum);
        }
      });
}

enum class Lost { nothing, mean_g, mean_gn, rstd, normal };

Var layer_norm_with(Tape& tape, Inputs in, Lost lost) {
  const Var x = in[0], weight = in[1], bias = in[2];
  const std::int64_t rows = x.value().rows, n = x.value().cols;
  const auto count = static_cast<Real>(n);
  const MatrixView normal = tape.scratch(rows, n), rstd = tape.scratch(1, rows);
  return record(
      "planted", x.shape(), {x, weight, bias},
      [&](Var y) {
        for (std::int64_t r = 0; r < rows; ++r) {
          Real mean = 0, variance = 0;
          for (std::int64_t j = 0; j < n; ++j) mean += at(x.value(), r, j) / count;
          for (std::int64_t j = 0; j < n; ++j) variance += std::pow(at(x.value(), r, j) - mean, 2) / count;
          rstd.data[r] = 1 / std::sqrt(variance + 1e-5);
          for (std::int64_t j = 0; j < n; ++j) {
            at(normal, r, j) = (at(x.value(), r, j) - mean) * rstd.data[r];
            at(y.value(), r, j) = at(normal, r, j) * weight.value().data[j] + bias.value().data[j];
          }
        }
      },
      [=](Var y) {
        for (std::int64_t r = 0; r < rows; ++r) {
          Real mean_g = 0, mean_gn = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            const Real dy = at(y.grad(), r, j), g = dy * weight.value().data[j];
            mean_g += lost == Lost::mean_g ? 0 : g / count;
            mean_gn += lost == Lost::mean_gn ? 0 : g * at(normal, r, j) / count;
            weight.grad().data[j] += dy * (lost == Lost::normal ? at(x.value(), r, j) : at(normal, r, j));
            bias.grad().data[j] += dy;
          }
          for (std::int64_t j = 0; j < n; ++j) {
            const Real g = at(y.grad(), r, j) * weight.value().data[j];
            at(x.grad(), r, j) +=
                (lost == Lost::rstd ? 1 : rstd.data[r]) * (g - mean_g - at(normal, r, j) * mean_gn);
          }
        }
      });
}

// Cross entropy of logits (3, 5), divided by the two labeled rows.
Var cross_entropy_with(Tape&, Var z, Real slope_smoothing, bool count_unlabeled) {
  const Var probability = softmax(z);
  return record(
      "planted", {1}, {z},
      [&](Var loss) { *loss.value().data = cross_entropy(z, kLabels, {.smoothing = Real(0.2)}).item(); },
      [=](Var loss) {
        for (std::int64_t r = 0; r < 3; ++r) {
          const std::int32_t label = kLabels[static_cast<std::size_t>(r)];
          if (label < 0 && !count_unlabeled) continue;
          for (std::int64_t j = 0; j < 5; ++j) {
            const Real target = slope_smoothing / 5 + (j == label ? 1 - slope_smoothing : 0);
            at(z.grad(), r, j) += *loss.grad().data / 2 * (at(probability.value(), r, j) - target);
          }
        }
      });
}

Var embedding_with(Tape&, Var table, std::int32_t row_shift) {
  return record(
      "planted", {1, 4, 3}, {table},
      [&](Var y) { std::copy_n(embedding(table, kTokenIds, 4).value().data, 12, y.value().data); },
      [=](Var y) {
        for (std::int64_t r = 0; r < 4; ++r) {
          const std::int64_t token = (kTokenIds[static_cast<std::size_t>(r)] + row_shift) % 5;
          for (std::int64_t c = 0; c < 3; ++c) at(table.grad(), token, c) += at(y.grad(), r, c);
        }
      });
}

// Dropout with probability 0.4, whose backward uses other factors.
Var dropout_with(Tape& tape, Var x, std::uint32_t site, Real times) {
  const auto key = [](std::uint32_t s) { return kernels::DropoutKey{Random(3, Stream::dropout), 1, 0, s}; };
  const MatrixView factor = tape.scratch(x.value().rows, x.value().cols);
  return record(
      "planted", x.shape(), {x},
      [&](Var y) {
        kernels::dropout_factors(factor, Real(0.4), key(7), 1);
        kernels::mul_forward(y.value(), x.value(), factor);
        kernels::dropout_factors(factor, Real(0.4), key(site), 1);
      },
      [=](Var y) {
        for (std::int64_t i = 0; i < x.value().elements(); ++i)
          x.grad().data[i] += times * factor.data[i] * y.grad().data[i];
      });
}

Var gelu_with(Tape& tape, Var x, bool slope_of_tanh_form) {
  const MatrixView derivative = tape.scratch(x.value().rows, x.value().cols),
                   unused = tape.scratch(x.value().rows, x.value().cols);
  return record(
      "planted", x.shape(), {x},
      [&](Var y) {
        kernels::gelu_erf_forward(y.value(), derivative, x.value());
        if (slope_of_tanh_form) kernels::gelu_tanh_forward(unused, derivative, x.value());
      },
      [=](Var y) { kernels::mul_backward(x.grad(), y.grad(), derivative); });
}

}  // namespace

TEST_CASE("mistakes in products and sums are caught", "[autograd]") {
  expect_caught("b not transposed in matmul", of({"a", "b"}, {3, 3}), {"a"},
                [](Tape& tape, Inputs in, bool right) { return matmul_with(tape, in, true, right); });
  expect_caught("a not transposed in matmul", of({"a", "b"}, {3, 3}), {"b"},
                [](Tape& tape, Inputs in, bool right) { return matmul_with(tape, in, right, true); });
  expect_caught("bias gradient forgotten", {input("x", {4, 3}), input("bias", {3})}, {"bias"},
                [](Tape& tape, Inputs in, bool right) { return bias_with(tape, in, right ? 4 : 0); });
  expect_caught("bias gradient of the first row only", {input("x", {4, 3}), input("bias", {3})}, {"bias"},
                [](Tape& tape, Inputs in, bool right) { return bias_with(tape, in, right ? 4 : 1); });
  expect_caught("embedding gradient one row off", {input("table", {5, 3})}, {"table"},
                [](Tape& tape, Inputs in, bool right) { return embedding_with(tape, in[0], right ? 0 : 1); });
}

TEST_CASE("mistakes in softmax and its relatives are caught", "[autograd]") {
  expect_caught("sum of dy instead of dy y", of({"x"}, {2, 5}), {"x"}, [](Tape& tape, Inputs in, bool right) {
    return softmax_with(tape, in[0], right ? RowSum::right : RowSum::without_y);
  });
  expect_caught("no row sum", of({"x"}, {2, 5}), {"x"}, [](Tape& tape, Inputs in, bool right) {
    return softmax_with(tape, in[0], right ? RowSum::right : RowSum::none);
  });
  expect_caught("label smoothing ignored in cross entropy", of({"z"}, {3, 5}), {"z"},
                [](Tape& tape, Inputs in, bool right) {
                  return cross_entropy_with(tape, in[0], right ? Real(0.2) : 0, false);
                });
  expect_caught(
      "gradient to unlabeled rows", of({"z"}, {3, 5}), {"z"},
      [](Tape& tape, Inputs in, bool right) { return cross_entropy_with(tape, in[0], Real(0.2), !right); });
}

TEST_CASE("mistakes in layer norm are caught", "[autograd]") {
  const auto expect_loss_caught = [&](const std::string& what, Lost lost, const std::string& caught_at) {
    expect_caught(what, {input("x", {2, 5}), input("weight", {5}), input("bias", {5})}, {caught_at},
                  [lost](Tape& tape, Inputs in, bool right) {
                    return layer_norm_with(tape, in, right ? Lost::nothing : lost);
                  });
  };
  expect_loss_caught("n mean(g n) lost", Lost::mean_gn, "x");
  expect_loss_caught("mean(g) lost", Lost::mean_g, "x");
  expect_loss_caught("rstd lost", Lost::rstd, "x");
  expect_loss_caught("weight gradient from x, not from the normal", Lost::normal, "weight");
}

TEST_CASE("mistakes in GELU and dropout are caught", "[autograd]") {
  expect_caught("derivative of the tanh form under the erf form", of({"x"}, {2, 5}), {"x"},
                [](Tape& tape, Inputs in, bool right) { return gelu_with(tape, in[0], !right); });
  expect_caught(
      "1 / (1 - p) missing in dropout", of({"x"}, {2, 9}), {"x"},
      [](Tape& tape, Inputs in, bool right) { return dropout_with(tape, in[0], 7, right ? 1 : Real(0.6)); });
  expect_caught("another mask in dropout", of({"x"}, {2, 9}), {"x"}, [](Tape& tape, Inputs in, bool right) {
    return dropout_with(tape, in[0], right ? 7 : 8, 1);
  });
}

#endif  // THIMBLE_DOUBLE
