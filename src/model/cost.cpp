#include "thimble/model/cost.h"

#include <algorithm>

#include "model/recurrent_cost.h"

namespace thimble {

namespace {

// The letters of a model, as doubles.
struct Widths {
  double V, C, H, F, L;
  double hidden;       // width of the output net
  double window;       // positions of a convolution; 0: attention
  double Dk, Dv;       // columns of a head's keys and values
  double queries, kv;  // columns of all queries, and of all keys and values beside them
  double norm;         // parameters of a norm

  explicit Widths(const ModelConfig& m, double vocabulary)
      : V(vocabulary),
        C(static_cast<double>(m.d_model)),
        H(static_cast<double>(m.heads)),
        F(static_cast<double>(m.d_ff)),
        L(static_cast<double>(m.layers)),
        hidden(static_cast<double>(m.output.hidden)),
        window(m.mixer == Mixer::convolution ? static_cast<double>(m.window) : 0),
        Dk(static_cast<double>(m.d_key())),
        Dv(static_cast<double>(m.d_value())),
        norm(m.norm_type == NormType::layer ? 2 * C : C) {
    const auto KV = static_cast<double>(m.kv_heads());
    queries = H * Dk;
    kv = (m.attention.tie_query_key ? 0 : KV * Dk) + KV * Dv;
  }
};

double real(std::int64_t size) { return static_cast<double>(size); }

double linear_parameters(double in, double out) { return in * out + out; }

double mixer_parameters(const ModelConfig& m, const Widths& w) {
  if (w.window > 0) return linear_parameters(w.window * w.C, w.C);
  const double score[] = {0, w.H * w.Dk, w.H * w.Dk * w.Dk};  // by ScoreKind::Parameter
  return linear_parameters(w.C, w.queries + w.kv) +
         score[static_cast<std::size_t>(kind_of(m.attention.score).parameter)] +
         linear_parameters(w.H * w.Dv, w.C);
}

// Of the first linear layers of a feed-forward net: it and its gate.
double wide_layers(const ModelConfig& m) { return m.gated ? 2 : 1; }

// Numbers on a tape.
struct Activations {
  double values = 0, gradients = 0;  // of a sequence
  double once = 0;                   // whatever the number of sequences
};

Activations convolution_activations(const Widths& w, double T) {
  return {.values = w.window * T * w.C + T * w.C,  // windows, linear
          .gradients = w.window * T * w.C,
          .once = w.window * w.C * w.C};
}

// Of T queries and K keys; across two sequences they are projected apart, and without positions.
Activations attention_activations(const ModelConfig& m, const Widths& w, double T, double K, bool cross,
                                  bool training) {
  const double x = T * w.C;
  const double factors = training && m.attention.dropout > 0 ? 3 : 1;  // P; with dropout f and P f too
  const bool tied = cross && m.attention.tie_query_key;
  const double projected = T * w.queries + K * (w.kv + (tied ? w.queries : 0));
  const double heads = T * w.H * w.Dv, weights = w.H * T * K;
  const bool rotary = m.positions == Positions::rotary && !cross;
  const double copies = rotary ? 2 : 1;
  const ScoreKind& kind = kind_of(m.attention.score);
  const double score = (kind.matrices() ? T * w.H * w.Dk : 0)  // head_linear
                       + (kind.product ? 0 : weights);         // additive_score
  const double sums = m.attention.combine == Combine::sum ? 2 * w.H - 1 : 1;
  return {.values = copies * projected           // linear, in_proj; rotary
                    + score                      //
                    + factors * weights + heads  // attention, attend
                    + sums * x,                  // linear, out_proj; add
          // Across, those of the heads and their sum are the ones that self-attention had.
          .gradients =
              copies * projected + score + (cross ? 0 : (heads == x ? 0 : heads) + (sums > 1 ? 2 * x : 0)),
          .once = (training || kind.product ? K * std::max(w.Dk, w.Dv) : 0)  // one head at work
                  + (training ? T * K : 0)                                   // its gradient
                  + (rotary ? 2 * T * w.Dk : 0)                              // its table
                  + (kind.product ? 0 : (T + 2 * K + 1) * w.Dk)};
}

// Layers over sequences of T tokens: encoders, and decoders with their attention on K tokens.
Activations stack_activations(const ModelConfig& m, const Widths& w, double T, double K, bool training) {
  const double dropout = training && m.dropout > 0 ? 2 : 0;  // what it gives, and the factors
  const bool slope = m.activation != Activation::relu && m.activation != Activation::tanh;
  const double x = T * w.C, wide = T * w.F;
  const double norm = x + (m.norm_type == NormType::layer ? 2 : 1) * T;  // and the statistics
  const double around = norm                                             // layer_norm, rms_norm
                        + dropout * x                                    // dropout
                        + x;                                             // add
  const double feed_forward = wide                                       // linear1
                              + (slope ? 2 : 1) * wide    // relu, gelu, tanh, silu, and the slope
                              + (m.gated ? 2 * wide : 0)  // gate, multiply
                              + dropout * wide            // dropout
                              + x;                        // linear2
  const Activations mixer =
      w.window > 0 ? convolution_activations(w, T) : attention_activations(m, w, T, T, false, training);
  const Activations cross = K > 0 ? attention_activations(m, w, T, K, true, training) : Activations();
  const double layer =
      mixer.values + around + (K > 0 ? cross.values + around : 0) + (w.F > 0 ? feed_forward + around : 0);
  // The most of one width that are wanted at once: around a residual, of the feed-forward net, of heads.
  return {.values = w.L * layer + (m.norm == NormOrder::pre ? norm : 0),
          .gradients = 3 * x + (m.gated ? 3 : 2) * wide + mixer.gradients + cross.gradients,
          .once = w.L * (mixer.once + cross.once)};
}

Activations embedding_activations(const ModelConfig& m, const Widths& w, double T, double table,
                                  bool training) {
  const double x = T * w.C;
  const bool added = m.positions == Positions::sinusoidal || m.positions == Positions::learned;
  return {.values = x                                           // embedding
                    + (added ? x : 0)                           // add_positions
                    + (training && m.dropout > 0 ? 2 : 0) * x,  // dropout
          .once = m.positions == Positions::sinusoidal ? table * w.C : 0};
}

bool writes(const ModelConfig& m) { return m.kind == ModelKind::encoder_decoder; }

// Rows of a table of positions.
double table(const ModelConfig& m, double length) { return m.max_length > 0 ? real(m.max_length) : length; }

double output_rows(const ModelConfig& m, double length) {
  return m.output.per == OutputPer::sequence ? 1 : length;
}

}  // namespace

double parameter_count(const ModelConfig& m, const ModelSizes& sizes) {
  if (m.kind == ModelKind::recurrent) return recurrent_parameters(m, sizes);
  const Widths w(m, real(sizes.vocabulary));
  const auto embedding = [&](std::int64_t length) {
    return w.V * w.C + (m.positions == Positions::learned ? table(m, real(length)) * w.C : 0);
  };
  const double feed_forward =
      w.F > 0 ? wide_layers(m) * linear_parameters(w.C, w.F) + linear_parameters(w.F, w.C) + w.norm : 0;
  const double mixer = mixer_parameters(m, w) + w.norm, last = m.norm == NormOrder::pre ? w.norm : 0;
  const double output =
      w.hidden > 0 ? linear_parameters(w.C, w.hidden) + 2 * w.hidden + linear_parameters(w.hidden, w.V)
                   : linear_parameters(w.C, w.V);
  const double encoder =
      embedding(writes(m) ? sizes.source_length : sizes.length) + w.L * (mixer + feed_forward) + last;
  const double decoder = writes(m) ? embedding(sizes.length) + w.L * (2 * mixer + feed_forward) + last : 0;
  return encoder + decoder + output;
}

Flops forward_flops(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences) {
  if (m.kind == ModelKind::recurrent) return recurrent_flops(m, sizes, sequences);
  const Widths w(m, real(sizes.vocabulary));
  const double B = real(sequences), T = real(sizes.length), S = real(sizes.source_length);
  const double output = w.hidden > 0 ? w.C * w.hidden + w.hidden * w.V : w.C * w.V;
  const ScoreKind& kind = kind_of(m.attention.score);
  const double mapped = kind.matrices() ? w.H * w.Dk * w.Dk : 0;
  Flops flops{.output = B * 2 * output_rows(m, T) * output};
  const auto mixer = [&](double queries, double keys) {
    if (w.window > 0) {
      flops.projections += B * w.L * queries * 2 * w.C * w.C * w.window;
      return;
    }
    const bool cross = queries != keys && m.attention.tie_query_key;
    const double kv = w.kv + (cross ? w.queries : 0);
    const double scores = kind.product ? w.H * w.Dk : 0;
    flops.projections +=
        B * w.L * 2 * (w.C * (queries * (w.queries + w.H * w.Dv) + keys * kv) + queries * mapped);
    flops.attention += B * w.L * 2 * queries * keys * (scores + w.H * w.Dv);
  };
  const auto feed_forward = [&](double tokens) {
    flops.feed_forward += B * w.L * tokens * 2 * w.C * w.F * (wide_layers(m) + 1);
  };
  mixer(T, T);
  feed_forward(T);
  if (writes(m)) {
    mixer(S, S);
    feed_forward(S);
    mixer(T, S);
  }
  return flops;
}

Flops training_flops(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences) {
  const Flops f = forward_flops(m, sizes, sequences);
  return {3 * f.projections, 3 * f.attention, 3 * f.feed_forward, 3 * f.output, 3 * f.recurrent};
}

double activation_count(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences,
                        bool training) {
  if (m.kind == ModelKind::recurrent) return recurrent_activations(m, sizes, sequences, training);
  const Widths w(m, real(sizes.vocabulary));
  const double T = real(sizes.length), S = real(sizes.source_length);
  const double rows = output_rows(m, T), hidden = rows * w.hidden;
  Activations all{.values = (m.output.per == OutputPer::sequence ? w.C + T : 0)  // pool
                            + 3 * hidden                                         // linear, layer_norm, relu
                            + 2 * rows * w.V,                                    // linear, cross_entropy
                  .gradients = 2 * hidden + rows * w.V};
  const auto add = [&](const Activations& part) {
    all.values += part.values;
    all.gradients += part.gradients;
    all.once += part.once;
  };
  add(embedding_activations(m, w, T, table(m, T), training));
  add(stack_activations(m, w, T, writes(m) ? S : 0, training));
  if (writes(m)) {
    add(embedding_activations(m, w, S, table(m, S), training));
    add(stack_activations(m, w, S, 0, training));
  }
  return real(sequences) * (all.values + (training ? all.gradients : 0)) + all.once;
}

double decoding_count(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences) {
  if (m.kind == ModelKind::recurrent) return recurrent_decoding(m, sizes, sequences);
  if (!writes(m)) return 0;
  const Widths w(m, real(sizes.vocabulary));
  const double T = table(m, real(sizes.length)), S = real(sizes.source_length);
  const Activations embedding = embedding_activations(m, w, S, table(m, S), false),
                    stack = stack_activations(m, w, S, 0, false);
  const double kept = w.L * (w.kv * S + 2 * w.kv * T);  // of the memory; of the answers, and a copy
  return real(sequences) * (embedding.values + stack.values + kept) + embedding.once + stack.once;
}

}  // namespace thimble
