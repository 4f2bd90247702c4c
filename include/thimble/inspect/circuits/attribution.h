// Direct logit attribution from the sites of a forward pass.
#pragma once

#include <string>
#include <vector>

#include "thimble/inspect/circuits/attribution_rounding.h"
#include "thimble/inspect/circuits/circuits.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Why a model's logits are no sum of parts: encoder-decoder, post-norm, or a two-layer output net. Empty when
// they are.
std::string attribution_unavailable(const ModelConfig&);

// For evaluation passes over all positions, of models without an obstacle.
class AttributionObserver : public ChunkHooks {
 public:
  explicit AttributionObserver(const Model&);

  void begin(const Chunk&) override;
  // Throws ShapeError when the pass is not over that chunk.
  void observe(Site site, const Shape&, ConstMatrixView value) override;
  Attribution finish() const;

 private:
  // A position from which a label's logit is read, with its share of it.
  struct Reading {
    std::int64_t row;  // of (B T)
    std::size_t label;
    double share;
    double size = 0;  // of the residual stream up to here, see AttributionRounding
  };
  struct Label {
    std::int64_t row;  // of the logits
    std::int32_t token;
    double residual = 0, last = 0;  // see AttributionRounding::bound
  };
  // Parts, in the order of their names.
  std::size_t layer_part(std::size_t layer, std::int64_t head = 0) const;
  std::size_t attention_bias(std::size_t layer) const;
  std::size_t feed_forward(std::size_t layer) const;

  void add_label(const Batch&, std::int64_t i);
  void add(std::size_t part, double sign, ConstMatrixView value);
  void add_heads(std::size_t layer, ConstMatrixView head_output);
  void apply_norm(ConstMatrixView residual);
  void compare(ConstMatrixView logits);

  const Model& model_;
  const bool centered_;  // by the norms
  std::vector<std::string> names_;
  DoubleMatrix directions_;  // (V, C): what the final norm and the output net read of a vector
  std::vector<DoubleMatrix> head_directions_;          // by layer (V, C): the same, of the heads side by side
  std::vector<std::vector<double>> attention_biases_;  // by layer (V)
  std::vector<double> norm_bias_, output_bias_;        // (V)

  AttributionRounding rounding_;

  std::int64_t rows_ = 0, length_ = 0;  // B T, T
  std::vector<Reading> readings_;
  std::vector<Label> labels_;
  DoubleMatrix raw_;            // (readings, parts), before the norm's scale
  DoubleMatrix sums_;           // (labels, parts)
  std::vector<double> totals_;  // by part, over all labels
  Attribution result_;
  double worst_excess_ = 0;  // error over what rounding explains
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
