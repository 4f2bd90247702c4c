#include "model/recurrent_cost.h"

namespace thimble {

namespace {

struct RecurrentWidths {
  double V, C, T, S;
  double h;  // of a direction of the encoder
  double I;  // what the decoder's GRU reads
  bool attends, additive, mapped;

  RecurrentWidths(const ModelConfig& m, const ModelSizes& sizes)
      : V(static_cast<double>(sizes.vocabulary)),
        C(static_cast<double>(m.d_model)),
        T(static_cast<double>(sizes.length)),
        S(static_cast<double>(sizes.source_length)),
        h(C / 2),
        I(m.attention.score == Score::additive ? 2 * C : C),
        attends(m.attention.score != Score::none),
        additive(m.attention.score == Score::additive),
        mapped(kind_of(m.attention.score).matrices()) {}
};

double affine_size(double in, double out) { return in * out + out; }

double gru_parameters(double in, double hidden) {
  return affine_size(in, 3 * hidden) + affine_size(hidden, 3 * hidden);
}

double encoder_values(const RecurrentWidths& w, double dropout) {
  const double direction = 3 * w.S * w.h                  // linear, what the input has to say
                           + w.h                          // zeros
                           + w.S * (3 + 3 + 1 + 3) * w.h  // step, linear, gru_cell and its gates
                           + w.S * w.h;                   // stack
  return (1 + dropout) * w.S * w.C                        // embedding, dropout
         + 2 * direction                                  //
         + w.S * w.C + w.C                                // concat, of all states and of the last
         + 2 * w.C                                        // linear, tanh: the decoder's first state
         + (w.additive ? w.S * w.C : 0);                  // linear, the keys
}

double decoder_values(const RecurrentWidths& w, double dropout, double factors) {
  const double plain = 3 * w.C                                   // linear, what the input has to say
                       + (3 + 3 + 1 + 3) * w.C                   // step, linear, gru_cell and its gates
                       + w.C                                     // stack
                       + (w.mapped ? w.C : 0)                    // head_linear
                       + (w.attends ? w.C + factors * w.S : 0);  // attention
  const double additive = 2 * w.C                                // stack, linear: the query
                          + w.S                                  // additive_score
                          + w.C + factors * w.S                  // attend
                          + (1 + 1 + 2) * w.C                    // step of what is seen, of the input, concat
                          + (3 + 3 + 1 + 3) * w.C                // linear, linear, gru_cell and its gates
                          + 2 * w.C;                             // stack, of what is seen and of states
  return (1 + dropout) * w.T * w.C                               // embedding, dropout
         + w.T * (w.additive ? additive : plain)                 //
         + (w.attends ? 4 * w.T * w.C : 0)                       // concat, linear, tanh
         + dropout * w.T * w.C                                   // dropout
         + 2 * w.T * w.V;                                        // linear, cross_entropy
}

// The most of each shape that are wanted at once. All states of a sequence are wanted from the moment on that
// their stack has been dealt with.
double gradients(const RecurrentWidths& w, bool dropout) {
  const double more = dropout ? 1 : 0;
  const double states = w.attends ? 2 * w.S * w.h + (w.S + 1) * w.h : 3 * w.h;
  const double encoder = states + (w.additive ? 2 : 1 + more) * w.S * w.C  // of all states; their sources
                         + (3 * w.S + 2 * 3) * w.h;                        // of what the input has to say
  const double whole = w.mapped ? 3 : w.attends ? 2 : 1 + more;            // what attention reads and gives
  const double decoder = w.T * w.V + (whole + (w.attends ? 2 : 0)) * w.T * w.C +
                         (w.additive ? 2 * w.T * w.C + 2 * w.C + w.S : w.T * w.C + 3 * w.T * w.C) +
                         2 * 3 * w.C;
  return encoder + decoder;
}

// Whatever the number of sequences: one sequence at work, and its gradient.
double once(const RecurrentWidths& w, bool training) {
  const double of_scores = training ? w.S : 0;
  if (w.additive) return w.T * ((2 * w.S + 2) * w.C + (w.C + 1) * of_scores);
  return w.attends ? w.C * w.S + w.T * of_scores : 0;
}

}  // namespace

double recurrent_parameters(const ModelConfig& m, const ModelSizes& sizes) {
  const RecurrentWidths w(m, sizes);
  const double score = w.additive ? 2 * affine_size(w.C, w.C) + w.C : w.mapped ? w.C * w.C : 0;
  return 2 * w.V * w.C                                              // embeddings
         + 2 * gru_parameters(w.C, w.h) + gru_parameters(w.I, w.C)  // both encoders, the decoder
         + affine_size(w.C, w.C)                                    // its first state
         + score + (w.attends ? affine_size(2 * w.C, w.C) : 0)      //
         + affine_size(w.C, w.V);                                   // output
}

Flops recurrent_flops(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences) {
  const RecurrentWidths w(m, sizes);
  const double B = static_cast<double>(sequences), square = w.C * w.C;
  const double score = w.additive ? (w.S + w.T) * square : w.mapped ? w.T * square : 0;
  const double compared = w.additive ? 1 : 2;  // mixing, and scores
  return {.projections = B * 2 * (score + (w.attends ? 2 * w.T * square : 0)),
          .attention = w.attends ? B * 2 * compared * w.T * w.S * w.C : 0,
          .output = B * 2 * w.T * w.C * w.V,
          .recurrent = B * 2 * (2 * w.S * 3 * w.h * (w.C + w.h) + square + w.T * 3 * w.C * (w.I + w.C))};
}

double recurrent_activations(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences,
                             bool training) {
  const RecurrentWidths w(m, sizes);
  const bool drops = training && m.dropout > 0;
  const double dropout = drops ? 2 : 0;                                // what it gives, and the factors
  const double factors = training && m.attention.dropout > 0 ? 3 : 1;  // P; with dropout f and P f too
  const double values = encoder_values(w, dropout) + decoder_values(w, dropout, factors);
  return static_cast<double>(sequences) * (values + (training ? gradients(w, drops) : 0)) + once(w, training);
}

double recurrent_decoding(const ModelConfig& m, const ModelSizes& sizes, std::int64_t sequences) {
  const RecurrentWidths w(m, sizes);
  const double kept = (w.additive ? 2 : 1) * w.S * w.C + w.C;  // states, keys, the state
  return static_cast<double>(sequences) * (encoder_values(w, 0) + kept);
}

}  // namespace thimble
