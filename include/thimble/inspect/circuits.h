// QK and OV circuits of attention heads, direct logit attribution, and attention rollout.
//
// The circuits are those of Elhage et al., "A mathematical framework for transformer circuits" (2021). QK:
// the attention score of a query vector for a key vector. OV: what a head that attends to a vector adds to
// the residual stream, or to the logits. Both are functions of the weights alone, without layer norms and
// biases.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "thimble/engine/model.h"
#include "thimble/inspect/position_means.h"
#include "thimble/inspect/spectral.h"
#include "thimble/train/json.h"

namespace thimble {

// The largest vocabulary with token maps.
inline constexpr std::int64_t kTokenMapVocabulary = 64;

// The weights of a head in PyTorch's orientation, (out, in).
struct HeadWeights {
  DoubleMatrix query, key;          // (Dk, C)
  DoubleMatrix value;               // (Dv, C)
  DoubleMatrix output;              // (C, Dv), its columns of the output projection
  std::optional<double> scale = 1;  // of the product of query and key; none for additive scores
};

struct HeadCircuits {
  // Sum of Re(e) / sum of |e| over the eigenvalues e of W_U W_O W_V W_E (V, V), in [-1, 1]: 1 when attending
  // to any token raises the logit of that token, -1 when it lowers it.
  std::optional<double> ov_copying;
  // 1 - |M - M^T| / (|M| + |M^T|) of M = W_Q^T W_K, Frobenius norms, in [0, 1]: 1 when M is symmetric, so
  // that attention is mutual, 0 when M^T = -M.
  std::optional<double> qk_reciprocity;
  // Dv singular values of W_O W_V and Dk of W_Q^T W_K, largest first.
  std::vector<double> ov_singular_values, qk_singular_values;
  // (V, V), between token embeddings, without positions, norms and biases:
  DoubleMatrix qk_tokens;  // row: query token, column: key token: scale W_E^T W_Q^T W_K W_E, before softmax
  DoubleMatrix ov_tokens;  // row: attended token, column: token of the logit: (W_U W_O W_V W_E)^T
  std::map<std::string, std::string> reasons;  // by the name of a missing one, why it is missing
};

// Returns the circuits of a head. embedding (V, C); unembedding (V, C), or null where the output net is not
// one matrix. Throws ShapeError when sizes do not match, NumericError when a weight is not finite.
HeadCircuits head_circuits(const HeadWeights& head, const DoubleMatrix& embedding,
                           const DoubleMatrix* unembedding);

// Returns the circuits of a head of an encoder-decoder, whose sources and targets have different embeddings:
// without token maps and copying, and in cross-attention without reciprocity.
HeadCircuits head_circuits(const HeadWeights& head, bool cross);

// Returns circuits that are all missing for a reason, for a head without projections of its own.
HeadCircuits no_circuits(const std::string& reason);

// Direct logit attribution: what each part of a pre-norm model adds to the logit of the correct label, not
// relative to other logits. The final norm is frozen: every part is centered and multiplied by the scale of
// the norm at that position, so the parts add up to the logit.
struct Attribution {
  struct Part {
    std::string name;  // "embedding", "head 0.1", "layer 0 attention bias", "layer 0 feed-forward", ...
    double mean = 0;   // over the labels
  };
  std::string reason;  // why it is not available; empty when it is
  std::vector<Part> parts;
  double logit = 0;        // mean over the labels
  double worst_error = 0;  // |sum of parts - logit| over the largest of logit and parts, of the worst label
  std::int64_t labels = 0;
  std::int64_t inexact = 0;  // labels with an error beyond the rounding bound
  std::string warning;       // about the worst of them; empty when there is none
};

struct CircuitReport {
  std::vector<HeadCircuits> heads;  // by HeadId
  Attribution attribution;
  // Attention rollout (Abnar and Zuidema 2020), a heuristic: the product over layers, later ones on the left,
  // of half the mean weights of the heads plus half the identity; (T, T), mean over sequences. Empty for an
  // encoder-decoder.
  PositionMeans rollout;
};

Json to_json(const HeadCircuits&);
Json to_json(const Attribution&);
Json to_json(const DoubleMatrix&);  // rows; null when empty

}  // namespace thimble

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns the circuits of every head, by HeadId. Throws as head_circuits of one head does.
std::vector<HeadCircuits> head_circuits(const Model&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
