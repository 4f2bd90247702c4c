// What the weights of attention heads say by themselves, and how the parts of a model add up to its logits.
//
// The circuits of a head are those of Elhage et al., "A mathematical framework for transformer circuits"
// (2021). QK: how much a query of one vector asks for a key of another. OV: what a head that looks at a
// vector adds to the model's vectors, or to the logits. They are facts about weights alone: layer norms and
// biases are left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/kernels/spectral.h"
#include "thimble/model/model.h"

namespace thimble {

// Token maps are for vocabularies of at most so many.
inline constexpr std::int64_t kTokenMapVocabulary = 64;

// In PyTorch's orientation, (out, in).
struct HeadWeights {
  DoubleMatrix query, key;          // (Dk, C)
  DoubleMatrix value;               // (Dv, C)
  DoubleMatrix output;              // (C, Dv), its part of the output projection
  std::optional<double> scale = 1;  // of the product of a query and a key; none: the score is no such product
};

struct HeadCircuits {
  // Sum of Re(e) / sum of |e| over the eigenvalues e of W_U W_O W_V W_E (V, V), in [-1, 1]: 1 when seeing a
  // token raises the logit of that token, whatever the token; -1 when it lowers it.
  std::optional<double> ov_copying;
  // 1 - |M - M^T| / (|M| + |M^T|) of M = W_Q^T W_K, Frobenius norms, in [0, 1]: 1 when any two vectors ask
  // for each other alike, 0 when M^T = -M.
  std::optional<double> qk_reciprocity;
  std::vector<double> ov_singular_values,
      qk_singular_values;  // of W_O W_V and W_Q^T W_K, Dv and Dk, largest first
  // (V, V), in model space between token vectors, without positions, norms and biases; row, column:
  DoubleMatrix qk_tokens;  // query token, key token: scale W_E^T W_Q^T W_K W_E, what the softmax would get
  DoubleMatrix ov_tokens;  // attended token, logit: (W_U W_O W_V W_E)^T
  std::map<std::string, std::string> reasons;  // why one of them is not there, by its name
};

// embedding (V, C); unembedding (V, C), or null where the output net is not one matrix. Throws ShapeError
// when sizes do not fit, NumericError when a weight is not finite.
HeadCircuits head_circuits(const HeadWeights& head, const DoubleMatrix& embedding,
                           const DoubleMatrix* unembedding);

// The same of a head of an encoder-decoder, whose vectors are not those of one vocabulary: without what is
// said in tokens, and in cross-attention without reciprocity.
HeadCircuits head_circuits(const HeadWeights& head, bool cross);

// Of a head without matrices of its own: nothing, for that reason.
HeadCircuits no_circuits(const std::string& reason);

// Direct logit attribution: what each part of a pre-norm model adds to the logit of the correct label, as it
// is, not against the other logits. The final norm is frozen: every part is centered and multiplied by the
// scale that the norm had at that position, so the parts add up to the logit.
struct Attribution {
  struct Part {
    std::string name;  // "embedding", "layer 0 head 1", "layer 0 attention bias", "layer 0 feed-forward", ...
    double mean = 0;   // over the labels
  };
  std::string reason;  // why it is not available; empty: it is
  std::vector<Part> parts;
  double logit = 0;        // mean over the labels
  double worst_error = 0;  // |sum of parts - logit| over the largest of logit and parts, of the worst label
  std::int64_t labels = 0;
  std::int64_t inexact = 0;  // labels whose error is more than rounding explains
  std::string warning;       // says so, of the worst of them; else empty
};

struct CircuitReport {
  std::vector<HeadCircuits> heads;  // by HeadId
  Attribution attribution;
  // Attention rollout (Abnar and Zuidema 2020), a heuristic: the product over layers, later ones on the left,
  // of half the mean weights of the heads and half the identity; (T, T), mean over the sequences of full
  // length. Empty when there are none, and for an encoder-decoder.
  DoubleMatrix rollout;
};

Json to_json(const HeadCircuits&);
Json to_json(const Attribution&);
Json to_json(const DoubleMatrix&);  // rows; null when empty

}  // namespace thimble

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Of every head, by HeadId; throws as head_circuits does.
std::vector<HeadCircuits> head_circuits(const Model&);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
