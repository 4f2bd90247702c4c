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
  double window;     // positions of a convolution; 0: attention
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
        window(m.mixer == Mixer::convolution ? static_cast<double>(m.window) : 0),
        Dk(static_cast<double>(m.d_key())),
        Dv(static_cast<double>(m.d_value())) {
    const auto KV = static_cast<double>(m.kv_heads());
    projected = H * Dk + (m.attention.tie_query_key ? 0 : KV * Dk) + KV * Dv;
  }
};

double linear_parameters(double in, double out) { return in * out + out; }

double mixer_parameters(const ModelConfig& m, const Sizes& s) {
  if (s.window > 0) return linear_parameters(s.window * s.C, s.C);
  const double score = m.attention.score == Score::general    ? s.H * s.Dk * s.Dk
                       : m.attention.score == Score::additive ? s.H * s.Dk
                                                              : 0;
  return linear_parameters(s.C, s.projected) + score + linear_parameters(s.H * s.Dv, s.C);
}

// Of the first linear layers of a feed-forward net: it and its gate.
double wide_layers(const ModelConfig& m) { return m.gated ? 2 : 1; }

struct Activations {
  double values = 0, gradients = 0;  // of a sequence
  double once = 0;                   // whatever the number of sequences
};

// Of attention, or of the convolution in its place.
Activations mixer_activations(const ModelConfig& m, const Sizes& s, bool training) {
  const double x = s.T * s.C;
  if (s.window > 0)
    return {.values = s.window * x + x,
            .gradients = s.window * x,
            .once = s.window * s.C * s.C};                             // windows, linear
  const double factors = training && m.attention.dropout > 0 ? 3 : 1;  // P; with dropout f and P f too
  const double projected = s.T * s.projected, heads = s.T * s.H * s.Dv, weights = s.H * s.T * s.T;
  const double copies = m.positions == Positions::rotary ? 2 : 1;
  const double score = m.attention.score == Score::general    ? s.T * s.H * s.Dk  // head_linear
                       : m.attention.score == Score::additive ? weights           // additive_score
                                                              : 0;
  const double sums = m.attention.combine == Combine::sum ? 2 * s.H - 1 : 1;
  return {.values = copies * projected           // linear, in_proj; rotary
                    + score                      //
                    + factors * weights + heads  // attention, attend
                    + sums * x,                  // linear, out_proj; add
          .gradients = copies * projected + score + (heads == x ? 0 : heads) + (sums > 1 ? 2 * x : 0),
          .once = s.T * std::max(s.Dk, s.Dv) + s.T * s.T                     // one head at work
                  + (m.positions == Positions::rotary ? 2 * s.T * s.Dk : 0)  // its table
                  + (m.attention.score == Score::additive ? (3 * s.T + 1) * s.Dk : 0)};
}

}  // namespace

double parameter_count(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length) {
  const Sizes s(m, vocabulary, length);
  const double norm = m.norm_type == NormType::layer ? 2 * s.C : s.C;
  const double feed_forward =
      s.F > 0 ? wide_layers(m) * linear_parameters(s.C, s.F) + linear_parameters(s.F, s.C) + norm : 0;
  const double output =
      s.hidden > 0 ? linear_parameters(s.C, s.hidden) + 2 * s.hidden + linear_parameters(s.hidden, s.V)
                   : linear_parameters(s.C, s.V);
  return s.V * s.C + (m.positions == Positions::learned ? s.table * s.C : 0) +
         s.L * (mixer_parameters(m, s) + norm + feed_forward) + (m.norm == NormOrder::pre ? norm : 0) +
         output;
}

Flops forward_flops(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                    std::int64_t sequences) {
  const Sizes s(m, vocabulary, length);
  const double tokens = static_cast<double>(sequences) * s.T, layers = tokens * s.L;
  const double output = s.hidden > 0 ? s.C * s.hidden + s.hidden * s.V : s.C * s.V;
  const double general = m.attention.score == Score::general ? s.H * s.Dk * s.Dk : 0;
  const double scores = m.attention.score == Score::additive ? 0 : s.T * s.H * s.Dk;
  Flops flops{.feed_forward = layers * 2 * s.C * s.F * (wide_layers(m) + 1),
              .output = static_cast<double>(sequences) * 2 * s.rows * output};
  if (s.window > 0) {
    flops.projections = layers * 2 * s.C * s.C * s.window;
  } else {
    flops.projections = layers * 2 * (s.C * (s.projected + s.H * s.Dv) + general);
    flops.attention = layers * 2 * (scores + s.T * s.H * s.Dv);
  }
  return flops;
}

Flops training_flops(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                     std::int64_t sequences) {
  const Flops f = forward_flops(m, vocabulary, length, sequences);
  return {3 * f.projections, 3 * f.attention, 3 * f.feed_forward, 3 * f.output};
}

double activation_count(const ModelConfig& m, std::int64_t vocabulary, std::int64_t length,
                        std::int64_t sequences, bool training) {
  const Sizes s(m, vocabulary, length);
  const double dropout = training && m.dropout > 0 ? 2 : 0;  // what it gives, and the factors
  const bool slope = m.activation != Activation::relu && m.activation != Activation::tanh;
  const double x = s.T * s.C, wide = s.T * s.F, hidden = s.rows * s.hidden;
  const double norm = x + (m.norm_type == NormType::layer ? 2 : 1) * s.T;  // and the statistics
  const bool added = m.positions == Positions::sinusoidal || m.positions == Positions::learned;
  const Activations mixer = mixer_activations(m, s, training);

  const double embedding = x                                   // embedding
                           + (added ? x : 0)                   // add_positions
                           + dropout * x;                      // dropout
  const double mixing = norm                                   // layer_norm, rms_norm
                        + mixer.values                         //
                        + dropout * x                          // dropout
                        + x;                                   // add
  const double feed_forward = norm                             // layer_norm, rms_norm
                              + wide                           // linear1
                              + (slope ? 2 : 1) * wide         // relu, gelu, tanh, silu, and the slope
                              + (m.gated ? 2 * wide : 0)       // gate, multiply
                              + dropout * wide                 // dropout
                              + x                              // linear2
                              + dropout * x                    // dropout
                              + x;                             // add
  const double output = (m.norm == NormOrder::pre ? norm : 0)  // layer_norm, rms_norm
                        + (m.output.per == OutputPer::sequence ? s.C + s.T : 0)  // pool
                        + 3 * hidden                                             // linear, layer_norm, relu
                        + 2 * s.rows * s.V;                                      // linear, cross_entropy
  // The most of one width that are wanted at once: around a residual, of the feed-forward net, of the rest.
  const double gradients =
      training ? 3 * x + (m.gated ? 3 : 2) * wide + mixer.gradients + 2 * hidden + s.rows * s.V : 0;
  const double once = (m.positions == Positions::sinusoidal ? s.table * s.C : 0) + s.L * mixer.once;
  return static_cast<double>(sequences) *
             (embedding + s.L * (mixing + (s.F > 0 ? feed_forward : 0)) + output + gradients) +
         once;
}

}  // namespace thimble
