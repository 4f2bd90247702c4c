#include "thimble/model/cost.h"

#include <algorithm>

namespace thimble {

namespace {

// The letters of a model, as doubles.
struct Sizes {
  double V, T, C, H, F, L;
  double table;      // rows of the position table
  double hidden;     // width of the output net
  double rows;       // logits of a sequence
  double projected;  // columns of queries, keys and values
  double Dk, Dv;     // columns of a head's keys and values

  Sizes(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length)
      : V(static_cast<double>(vocabulary)),
        T(static_cast<double>(length)),
        C(static_cast<double>(m.d_model)),
        H(static_cast<double>(m.heads)),
        F(static_cast<double>(m.d_ff)),
        L(static_cast<double>(m.layers)),
        table(m.max_length > 0 ? static_cast<double>(m.max_length) : T),
        hidden(static_cast<double>(m.output.hidden)),
        rows(m.output.per == OutputPer::sequence ? 1 : T),
        Dk(static_cast<double>(m.d_key())),
        Dv(static_cast<double>(m.d_value())) {
    const auto KV = static_cast<double>(m.kv_heads());
    projected = H * Dk + (m.attention.tie_query_key ? 0 : KV * Dk) + KV * Dv;
  }
};

double linear_parameters(double in, double out) { return in * out + out; }

}  // namespace

double parameter_count(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length) {
  const Sizes s(m, vocabulary, length);
  const double norm = 2 * s.C;
  const double layer = linear_parameters(s.C, s.projected) + linear_parameters(s.H * s.Dv, s.C) +
                       linear_parameters(s.C, s.F) + linear_parameters(s.F, s.C) + 2 * norm;
  const double output =
      s.hidden > 0 ? linear_parameters(s.C, s.hidden) + 2 * s.hidden + linear_parameters(s.hidden, s.V)
                   : linear_parameters(s.C, s.V);
  return s.V * s.C + (m.positions == Positions::learned ? s.table * s.C : 0) + s.L * layer +
         (m.norm == NormOrder::pre ? norm : 0) + output;
}

Flops forward_flops(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                    std::int64_t sequences) {
  const Sizes s(m, vocabulary, length);
  const auto B = static_cast<double>(sequences);
  const double output = s.hidden > 0 ? s.C * s.hidden + s.hidden * s.V : s.C * s.V;
  return {.projections = B * s.L * 2 * s.T * s.C * (s.projected + s.H * s.Dv),
          .attention = B * s.L * 2 * s.T * s.T * s.H * (s.Dk + s.Dv),
          .feed_forward = B * s.L * 4 * s.T * s.C * s.F,
          .output = B * 2 * s.rows * output};
}

Flops training_flops(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                     std::int64_t sequences) {
  const Flops f = forward_flops(m, vocabulary, length, sequences);
  return {3 * f.projections, 3 * f.attention, 3 * f.feed_forward, 3 * f.output};
}

double activation_count(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                        std::int64_t sequences, bool training) {
  const Sizes s(m, vocabulary, length);
  const double dropout = training && m.dropout > 0 ? 2 : 0;            // what it gives, and the factors
  const double weights = training && m.attention.dropout > 0 ? 3 : 1;  // P; with dropout f and P f too
  const bool gelu = m.activation == Activation::gelu || m.activation == Activation::gelu_tanh;
  const double activation = gelu ? 2 : 1;  // and the slope
  const double x = s.T * s.C, wide = s.T * s.F, hidden = s.rows * s.hidden;
  const double norm = x + 2 * s.T;  // and the statistics
  const double projected = s.T * s.projected, heads = s.T * s.H * s.Dv;
  const double sums = m.attention.combine == Combine::sum ? 2 * s.H - 1 : 1;

  const double embedding = x                                                     // embedding
                           + (m.positions == Positions::none ? 0 : x)            // add_positions
                           + dropout * x;                                        // dropout
  const double attention = norm                                                  // layer_norm
                           + projected                                           // linear, in_proj
                           + weights * s.H * s.T * s.T + heads                   // attention
                           + sums * x                                            // linear, out_proj; add
                           + dropout * x                                         // dropout
                           + x;                                                  // add
  const double feed_forward = norm                                               // layer_norm
                              + wide                                             // linear1
                              + activation * wide                                // relu, gelu, tanh
                              + dropout * wide                                   // dropout
                              + x                                                // linear2
                              + dropout * x                                      // dropout
                              + x;                                               // add
  const double output = (m.norm == NormOrder::pre ? norm : 0)                    // layer_norm
                        + (m.output.per == OutputPer::sequence ? s.C + s.T : 0)  // pool
                        + 3 * hidden                                             // linear, layer_norm, relu
                        + 2 * s.rows * s.V;                                      // linear, cross_entropy
  // The most of one width that are wanted at once: around a residual, of the feed-forward net, of the rest.
  const double gradients =
      training ? 3 * x + 2 * wide + projected + (heads == x ? 0 : heads) + 2 * hidden + s.rows * s.V : 0;
  const double once = (m.positions == Positions::sinusoidal ? s.table * s.C : 0)  // the table
                      + s.L * (s.T * std::max(s.Dk, s.Dv) + s.T * s.T);  // one head at work in attention
  return static_cast<double>(sequences) *
             (embedding + s.L * (attention + feed_forward) + output + gradients) +
         once;
}

}  // namespace thimble
