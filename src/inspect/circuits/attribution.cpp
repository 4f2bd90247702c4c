// The last vector of a pre-norm model is x = sum of parts p, and the logit of token y
//   sum_c U[y, c] (n_c w_c + b_c) + o[y],  n = (x - mean x) rstd,
// is linear in x apart from rstd. With u = U[y] w, a part adds rstd sum_c (u_c - mean u) p_c. The rows u -
// mean u are the `directions`; times the output projection they are the directions of the heads. RMS norm
// subtracts no mean and has no b.
#include "inspect/circuits/attribution.h"

#include <cmath>
#include <limits>

#include "inspect/circuits/weights.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// A logit and its parts are one sum of terms, rounded in two orders. Each rounding moves a term by a share of at most
// the unit roundoff u, so n of them move all by about sqrt(n) u sum |terms| (Higham and Mary 2019, 2.8). n: 1 for a
// vector of the residual stream, and C in double; K for heads; C each for mean, variance and output, T for the pooling.
constexpr double kReal = std::numeric_limits<Real>::epsilon() / 2,
                 kDouble = std::numeric_limits<double>::epsilon() / 2,
                 kSmallest = std::numeric_limits<Real>::min(), kDeviations = 4;

// A sum of products, and the sum of their sizes.
struct Sum {
  double value = 0, terms = 0;
};

Sum dot(const double* a, const Real* b, std::int64_t n) {
  Sum sum;
  for (std::int64_t i = 0; i < n; ++i) {
    const double term = a[i] * static_cast<double>(b[i]);
    sum.value += term;
    sum.terms += std::abs(term);
  }
  return sum;
}

// Returns the sizes of the elements.
DoubleMatrix sizes(DoubleMatrix m) {
  for (double& x : m.values) x = std::abs(x);
  return m;
}

double norm_scale(const Real* x, std::int64_t n, bool centered, double epsilon) {
  double mean = 0, variance = 0;
  for (std::int64_t i = 0; centered && i < n; ++i) mean += static_cast<double>(x[i]) / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double distance = static_cast<double>(x[i]) - mean;
    variance += distance * distance / static_cast<double>(n);
  }
  return 1 / std::sqrt(variance + epsilon);
}

// Returns whether the final norm subtracts the mean.
bool is_centered(const ModelConfig& config) {
  return config.norm_final && config.norm_type == NormType::layer;
}

// Returns U (V, C) times the weight of the final norm.
DoubleMatrix scaled_output(const Model& model) {
  const std::string reason = attribution_unavailable(model.config());
  require<ConfigError>(reason.empty(), "attribution: {}", reason);
  DoubleMatrix output = output_weight(model);
  const DoubleMatrix norm_weight = in_double_or(model.parameters(), "encoder.norm.weight", output.cols, 1);
  for (std::int64_t y = 0; y < output.rows; ++y)
    for (std::int64_t c = 0; c < output.cols; ++c) output(y, c) *= norm_weight(0, c);
  return output;
}

// Subtracts the mean of each row if the norm centers.
DoubleMatrix directions(DoubleMatrix output, bool centered) {
  for (std::int64_t y = 0; centered && y < output.rows; ++y) {
    double mean = 0;
    for (std::int64_t c = 0; c < output.cols; ++c) mean += output(y, c) / static_cast<double>(output.cols);
    for (std::int64_t c = 0; c < output.cols; ++c) output(y, c) -= mean;
  }
  return output;
}

// Returns the output projection of all heads, (C, H Dv).
DoubleMatrix output_weights(const MultiHeadAttention& attention, const ParameterStore& store) {
  const std::int64_t heads = attention.sizes.heads, width = attention.sizes.d_value;
  DoubleMatrix all(store.entry(attention.out_proj_weights[0]).shape[0], heads * width);
  for (std::int64_t h = 0; h < heads; ++h) {
    const DoubleMatrix one = in_double(attention.head(store, h).output);
    for (std::int64_t c = 0; c < one.rows; ++c) std::copy_n(one.row(c), width, all.row(c) + h * width);
  }
  return all;
}

}  // namespace

std::string attribution_unavailable(const ModelConfig& config) {
  if (config.kind == ModelKind::encoder_decoder)
    return "encoder-decoder: the encoder reaches the logits only through cross-attention, so logits are not a sum of parts; requires model.kind encoder";
  if (config.kind == ModelKind::recurrent)
    return "recurrent: attention reaches the logits through the cell, so logits are not a sum of parts; requires model.kind encoder";
  if (config.norm == NormOrder::post)
    return "post-norm: every later norm rescales the parts, so logits are not a sum of parts; requires model.norm pre";
  if (config.output.hidden > 0)
    return "two-layer output net: logits are not a sum of parts; requires model.output.hidden 0";
  return "";
}

AttributionObserver::AttributionObserver(const Model& model)
    : model_(model),
      centered_(is_centered(model.config())),
      output_(scaled_output(model)),
      directions_(directions(output_, centered_)) {
  const ParameterStore& store = model.parameters();
  const DoubleMatrix output = output_weight(model),
                     bias = transposed(in_double_or(store, "encoder.norm.bias", output.cols, 0));
  norm_bias_ = matmul(output, bias).values;
  norm_bias_terms_ = matmul(sizes(output), sizes(bias)).values;
  output_bias_ = in_double_or(store, "output.bias", output.rows, 0).values;
  names_ = {"embedding"};
  for (const AttentionLayer& layer : model.attention_layers()) {
    const MultiHeadAttention& attention = *model.attention(layer);
    const DoubleMatrix weights = output_weights(attention, store),
                       of_layer = transposed(output_bias(attention, store));
    head_directions_.push_back(matmul(directions_, weights));
    head_terms_.push_back(matmul(sizes(directions_), sizes(weights)));
    attention_biases_.push_back(matmul(directions_, of_layer).values);
    attention_bias_terms_.push_back(matmul(sizes(directions_), sizes(of_layer)).values);
    for (std::int64_t h = 0; h < layer.heads; ++h) names_.push_back("head " + layer.head_name(h));
    names_.push_back(fmt::format("layer {} attention bias", layer.index));
    names_.push_back(fmt::format("layer {} feed-forward", layer.index));
  }
  names_.insert(names_.end(), {"final norm bias", "output bias"});
  totals_.resize(names_.size());
}

std::size_t AttributionObserver::layer_part(std::size_t layer, std::int64_t head) const {
  return 1 + layer * (static_cast<std::size_t>(model_.config().heads) + 2) + static_cast<std::size_t>(head);
}

std::size_t AttributionObserver::attention_bias(std::size_t layer) const {
  return layer_part(layer, model_.config().heads);
}

std::size_t AttributionObserver::feed_forward(std::size_t layer) const { return attention_bias(layer) + 1; }

void AttributionObserver::begin(const Chunk& chunk) {
  const Batch& batch = chunk.batch;
  readings_.clear();
  labels_.clear();
  length_ = batch.length;
  rows_ = batch.sequences * batch.length;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.labels[i] != kIgnore) add_label(batch, static_cast<std::int64_t>(i));
  }
  const auto parts = static_cast<std::int64_t>(names_.size());
  raw_ = DoubleMatrix(static_cast<std::int64_t>(readings_.size()), parts);
  sums_ = DoubleMatrix(static_cast<std::int64_t>(labels_.size()), parts);
}

// Logits per sequence are read from the first, the last or the mean vector, which is linear as well.
void AttributionObserver::add_label(const Batch& batch, std::int64_t i) {
  const std::size_t label = labels_.size();
  labels_.push_back({.row = i, .token = batch.labels[static_cast<std::size_t>(i)]});
  const OutputConfig& output = model_.config().output;
  if (output.per != OutputPer::sequence) {
    readings_.push_back({.row = i, .label = label, .share = 1});
    return;
  }
  const std::int64_t length = batch.lengths[static_cast<std::size_t>(i)];
  const std::int64_t from = output.pooling == Pooling::last ? length - 1 : 0;
  const std::int64_t to = output.pooling == Pooling::first ? 1 : length;
  for (std::int64_t t = from; t < to; ++t)
    readings_.push_back(
        {.row = i * batch.length + t, .label = label, .share = 1 / static_cast<double>(to - from)});
}

void AttributionObserver::observe(Site site, const Shape&, ConstMatrixView value) {
  const auto layer = static_cast<std::size_t>(site.layer);
  if (site.kind == SiteKind::embedding) add(0, 1, value);
  if (site.kind == SiteKind::head_output) add_heads(layer, value);
  if (site.kind == SiteKind::residual_mid) add(feed_forward(layer), -1, value);
  if (site.kind == SiteKind::logits) compare(value);
  if (site.kind != SiteKind::residual_out) return;
  add(feed_forward(layer), 1, value);
  if (layer + 1 == model_.attention_layers().size()) apply_norm(value);
}

void AttributionObserver::add(std::size_t part, double sign, ConstMatrixView value) {
  require<ShapeError>(value.rows == rows_, "attribution: the pass has {} positions, the batch {}", value.rows,
                      rows_);
  for (std::size_t r = 0; r < readings_.size(); ++r) {
    const double* direction = directions_.row(labels_[readings_[r].label].token);
    const Real* x = value.row(readings_[r].row);
    const Sum sum = dot(direction, x, value.cols);
    raw_.row(static_cast<std::int64_t>(r))[part] += sign * sum.value;
    readings_[r].error += (kReal + std::sqrt(static_cast<double>(value.cols)) * kDouble) * sum.terms;
  }
}

void AttributionObserver::add_heads(std::size_t layer, ConstMatrixView head_output) {
  const std::int64_t size = model_.attention_layers()[layer].d_value;
  for (std::size_t r = 0; r < readings_.size(); ++r) {
    const auto token = static_cast<std::size_t>(labels_[readings_[r].label].token);
    const double* direction = head_directions_[layer].row(static_cast<std::int64_t>(token));
    const Real* z = head_output.row(readings_[r].row);
    double* raw = raw_.row(static_cast<std::int64_t>(r));
    for (std::int64_t h = 0; h < model_.config().heads; ++h)
      raw[layer_part(layer, h)] = dot(direction + h * size, z + h * size, size).value;
    raw[attention_bias(layer)] = attention_biases_[layer][token];
    const double terms =
        dot(head_terms_[layer].row(static_cast<std::int64_t>(token)), z, head_output.cols).terms;
    readings_[r].error += std::sqrt(static_cast<double>(head_output.cols + 1)) * kReal *
                          (terms + attention_bias_terms_[layer][token]);
  }
}

void AttributionObserver::apply_norm(ConstMatrixView residual) {
  for (std::size_t r = 0; r < readings_.size(); ++r) {
    const Reading& reading = readings_[r];
    const Real* x = residual.row(reading.row);
    const double scale =
        reading.share * (model_.config().norm_final
                             ? norm_scale(x, residual.cols, centered_, model_.config().norm_epsilon)
                             : 1);
    const double* from = raw_.row(static_cast<std::int64_t>(r));
    double* to = sums_.row(static_cast<std::int64_t>(reading.label));
    for (std::int64_t p = 0; p < raw_.cols; ++p) to[p] += scale * from[p];
    double mean = 0;
    for (std::int64_t c = 0; centered_ && c < residual.cols; ++c)
      mean += std::abs(static_cast<double>(x[c])) / static_cast<double>(residual.cols);
    Label& label = labels_[reading.label];
    label.error += scale * reading.error;
    for (std::int64_t c = 0; c < residual.cols; ++c)
      label.terms += scale * std::abs(output_(label.token, c)) * (std::abs(static_cast<double>(x[c])) + mean);
  }
}

void AttributionObserver::compare(ConstMatrixView logits) {
  const double n = static_cast<double>(3 * model_.config().d_model + length_ + 16);
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const Label& label = labels_[i];
    const auto token = static_cast<std::size_t>(label.token);
    double* parts = sums_.row(static_cast<std::int64_t>(i));
    parts[names_.size() - 2] = norm_bias_[token];
    parts[names_.size() - 1] = output_bias_[token];
    const auto logit = static_cast<double>(logits.row(label.row)[token]);
    double sum = 0, largest = std::abs(logit);
    for (std::size_t p = 0; p < names_.size(); ++p) {
      sum += parts[p];
      largest = std::max(largest, std::abs(parts[p]));
      totals_[p] += parts[p];
    }
    const double error = std::abs(sum - logit);
    result_.worst_error = std::max(result_.worst_error, largest > 0 ? error / largest : 0);
    result_.logit += logit;
    ++result_.labels;
    const double terms = label.terms + norm_bias_terms_[token] + std::abs(output_bias_[token]),
                 bound = kDeviations * (label.error + std::sqrt(n) * kReal * (terms + kSmallest));
    if (error <= bound) continue;
    ++result_.inexact;
    if (error / bound <= worst_excess_) continue;
    worst_excess_ = error / bound;
    result_.warning = fmt::format(
        "the parts of the logit of output {} sum to {}, the logit is {}; rounding explains a difference of {:.1g}",
        token, sum, logit, bound);
  }
}

Attribution AttributionObserver::finish() const {
  Attribution attribution = result_;
  const double labels = static_cast<double>(std::max<std::int64_t>(1, result_.labels));
  attribution.logit /= labels;
  for (std::size_t p = 0; p < names_.size(); ++p)
    attribution.parts.push_back({names_[p], totals_[p] / labels});
  if (attribution.inexact > 0) {
    attribution.warning = fmt::format("{} of {} logits are not the sum of their parts; the worst: {}",
                                      attribution.inexact, attribution.labels, attribution.warning);
  }
  return attribution;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
