#include "thimble/inspect/circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/train/json.h"

namespace thimble {

namespace {

double dot(const DoubleMatrix& a, const DoubleMatrix& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// The nonzero eigenvalues of (W_U W_O) (W_V W_E) are those of (W_V W_E) (W_U W_O), which is (Dv, Dv).
std::optional<double> copying(const DoubleMatrix& to_logits, const DoubleMatrix& from_tokens) {
  double real = 0, size = 0;
  for (const std::complex<double>& e : eigenvalues(matmul(from_tokens, to_logits))) {
    real += e.real();
    size += std::abs(e);
  }
  return size > 0 ? std::optional(real / size) : std::nullopt;
}

// With M = Q^T K: |M|^2 = <Q Q^T, K K^T>, <M, M^T> = <K Q^T, (K Q^T)^T> and
// |M - M^T|^2 = 2 |M|^2 - 2 <M, M^T>.
std::optional<double> reciprocity(const DoubleMatrix& query, const DoubleMatrix& key) {
  const DoubleMatrix q = transposed(query), k = transposed(key), crossed = matmul(key, q);
  const double square = dot(matmul(query, q), matmul(key, k)), inner = dot(crossed, transposed(crossed));
  if (square <= 0) return std::nullopt;
  return 1 - std::sqrt(std::max(0.0, 2 * square - 2 * inner)) / (2 * std::sqrt(square));
}

void add_token_maps(HeadCircuits& circuits, const HeadWeights& head, const DoubleMatrix& embedding,
                    const DoubleMatrix* to_logits, const DoubleMatrix& from_tokens) {
  if (head.scale) {
    const DoubleMatrix queries = matmul(embedding, transposed(head.query)),
                       keys = matmul(head.key, transposed(embedding));
    circuits.qk_tokens = matmul(queries, keys);
    for (double& x : circuits.qk_tokens.values) x *= *head.scale;
  }
  if (to_logits != nullptr) circuits.ov_tokens = transposed(matmul(*to_logits, from_tokens));
}

// Returns the circuits that do not involve tokens.
HeadCircuits without_tokens(const HeadWeights& head, bool cross = false) {
  HeadCircuits circuits;
  circuits.ov_singular_values = singular_values_of_product(head.output, head.value);
  if (cross)
    circuits.reasons["qk_reciprocity"] = "cross-attention: queries and keys come from different sequences";
  if (!head.scale) {
    for (const char* name : {"qk_singular_values", "qk_reciprocity", "qk_tokens"})
      circuits.reasons.try_emplace(name, "this score is not a product of a query, a matrix and a key");
    return circuits;
  }
  circuits.qk_singular_values = singular_values_of_product(transposed(head.query), head.key);
  if (!cross) circuits.qk_reciprocity = reciprocity(head.query, head.key);
  if (!circuits.qk_reciprocity) circuits.reasons.try_emplace("qk_reciprocity", "the QK circuit is zero");
  return circuits;
}

}  // namespace

HeadCircuits no_circuits(const std::string& reason) {
  HeadCircuits circuits;
  for (const char* name :
       {"ov_copying", "ov_singular_values", "ov_tokens", "qk_reciprocity", "qk_singular_values", "qk_tokens"})
    circuits.reasons[name] = reason;
  return circuits;
}

HeadCircuits head_circuits(const HeadWeights& head, bool cross) {
  HeadCircuits circuits = without_tokens(head, cross);
  for (const char* name : {"ov_copying", "qk_tokens", "ov_tokens"})
    circuits.reasons[name] =
        "encoder-decoder: sources and targets have different embeddings; requires model.kind encoder";
  return circuits;
}

HeadCircuits head_circuits(const HeadWeights& head, const DoubleMatrix& embedding,
                           const DoubleMatrix* unembedding) {
  HeadCircuits circuits = without_tokens(head);
  const DoubleMatrix from_tokens = matmul(head.value, transposed(embedding));
  std::optional<DoubleMatrix> to_logits;
  if (unembedding != nullptr && unembedding->rows == embedding.rows) {
    to_logits = matmul(*unembedding, head.output);
    circuits.ov_copying = copying(*to_logits, from_tokens);
    if (!circuits.ov_copying) circuits.reasons["ov_copying"] = "all eigenvalues of the OV circuit are zero";
  } else {
    for (const char* name : {"ov_copying", "ov_tokens"})
      circuits.reasons[name] =
          unembedding == nullptr
              ? "two-layer output net: the unembedding is not one matrix; requires model.output.hidden 0"
              : fmt::format("the {} outputs are the answers of the data, not the vocabulary",
                            unembedding->rows);
  }
  if (embedding.rows <= kTokenMapVocabulary) {
    add_token_maps(circuits, head, embedding, to_logits ? &*to_logits : nullptr, from_tokens);
  } else {
    for (const char* name : {"qk_tokens", "ov_tokens"}) {
      circuits.reasons.try_emplace(
          name, fmt::format("{} tokens: token maps require a vocabulary of at most {}", embedding.rows,
                            kTokenMapVocabulary));
    }
  }
  return circuits;
}

Json to_json(const DoubleMatrix& matrix) {
  if (matrix.values.empty()) return nullptr;
  return map_json(matrix.values, matrix.cols);
}

Json to_json(const HeadCircuits& circuits) {
  return {{"ov_copying", or_null(circuits.ov_copying)},
          {"qk_reciprocity", or_null(circuits.qk_reciprocity)},
          {"ov_singular_values", circuits.ov_singular_values},
          {"qk_singular_values", circuits.qk_singular_values},
          {"qk_tokens", to_json(circuits.qk_tokens)},
          {"ov_tokens", to_json(circuits.ov_tokens)},
          {"reasons", circuits.reasons}};
}

Json to_json(const Attribution& attribution) {
  if (!attribution.reason.empty()) return {{"available", false}, {"reason", attribution.reason}};
  Json parts = Json::array();
  for (const Attribution::Part& part : attribution.parts)
    parts.push_back({{"name", part.name}, {"mean", part.mean}});
  Json json = {{"available", true},
               {"parts", parts},
               {"logit", attribution.logit},
               {"labels", attribution.labels},
               {"worst_error", attribution.worst_error},
               {"inexact", attribution.inexact}};
  if (!attribution.warning.empty()) json["warning"] = attribution.warning;
  return json;
}

}  // namespace thimble
