#include "inspect/circuits/attribution_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspect/circuits/weights.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

constexpr double kUnitRoundoff = std::numeric_limits<Real>::epsilon() / 2;
constexpr double kDoubleRoundoff = std::numeric_limits<double>::epsilon() / 2;
constexpr double kSmallest =
    std::numeric_limits<Real>::min();  // rounding errors of smaller numbers do not shrink
// Standard deviations of the sum of roundings at most u in size; nearly seven if they are uniform in [-u, u].
constexpr double kDeviations = 4;

template <class T>
double norm(const T* x, std::int64_t n) {
  double largest = 0, sum = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(static_cast<double>(x[i])));
  if (largest == 0) return 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double part = static_cast<double>(x[i]) / largest;
    sum += part * part;
  }
  return largest * std::sqrt(sum);
}

double norm(const DoubleMatrix& m) { return norm(m.values.data(), std::ssize(m.values)); }

}  // namespace

AttributionRounding::AttributionRounding(const Model& model, const DoubleMatrix& directions)
    : channels_(directions.cols) {
  const ParameterStore& store = model.parameters();
  const DoubleMatrix output = output_weight(model), bias = in_double_or(store, "output.bias", output.rows, 0),
                     weight = in_double_or(store, "encoder.norm.weight", output.cols, 1);
  const double norm_bias = norm(in_double_or(store, "encoder.norm.bias", output.cols, 0));
  const double of_double = kDoubleRoundoff * std::sqrt(2 * static_cast<double>(channels_));
  for (std::int64_t y = 0; y < directions.rows; ++y) {
    std::vector<double> uncentered(output.row(y), output.row(y) + channels_);
    std::ranges::transform(uncentered, weight.values, uncentered.begin(), std::multiplies());
    double largest = 0;
    for (std::int64_t c = 0; c < channels_; ++c) largest = std::max(largest, std::abs(directions(y, c)));
    const double direction = norm(uncentered.data(), channels_);
    tokens_.push_back({.residual = std::hypot(kUnitRoundoff * largest, of_double * direction),
                       .direction = direction,
                       .offset = norm(output.row(y), channels_) * norm_bias + std::abs(bias(0, y))});
  }
  for (const AttentionLayer& layer : model.attention_layers()) {
    const MultiHeadAttention& attention = *model.attention(layer);
    double all = 0;
    for (const Parameter p : attention.out_proj_weights) all = std::hypot(all, norm(in_double(store, p)));
    projections_.push_back({.inputs = attention.sizes.heads * attention.sizes.d_value,
                            .weight = all,
                            .bias = norm(output_bias(attention, store))});
  }
}

double AttributionRounding::size(const Real* x, std::int64_t n) { return norm(x, n); }

double AttributionRounding::size(std::size_t layer, const Real* z) const {
  const auto& [inputs, weight, bias] = projections_[layer];
  return std::sqrt(2 * static_cast<double>(inputs)) * (weight * norm(z, inputs) + bias);
}

double AttributionRounding::bound(std::size_t token, double residual, double last,
                                  std::int64_t length) const {
  const Token& of = tokens_[token];
  const double roundings = static_cast<double>(8 * channels_ + 2 * length);
  return kDeviations * std::hypot(of.residual * residual, kUnitRoundoff * std::sqrt(roundings) *
                                                              (of.direction * last + of.offset + kSmallest));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
