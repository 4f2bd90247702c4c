// Direct logit attribution from the hook sites of a forward pass.
#pragma once

#include <string>
#include <vector>

#include "thimble/inspect/circuits.h"
#include "thimble/inspect/spectral.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns why a model's logits are not a sum of parts: encoder-decoder, recurrent, post-norm, or a two-layer
// output net. Empty when they are.
std::string attribution_unavailable(const ModelConfig&);

// Accumulates the attribution over evaluation passes on all positions of a model for which it is available.
class AttributionObserver : public ChunkHooks {
 public:
  explicit AttributionObserver(const Model&);

  void begin(const Chunk&) override;
  // Throws ShapeError when the pass is not over the chunk of begin().
  void observe(Site site, const Shape&, ConstMatrixView value) override;
  Attribution finish() const;

 private:
  // A position that contributes to the logit of a label, with its share.
  struct Reading {
    std::int64_t row;  // of (B T)
    std::size_t label;
    double share;
    double error = 0;  // rounding that the residual stream explains, in standard deviations
  };
  struct Label {
    std::int64_t row;  // of the logits
    std::int32_t token;
    double error = 0;  // that of its readings, scaled by the final norm
    double terms = 0;  // sizes of the products from the final norm to the logit
  };
  // Return the index of a part in names_.
  std::size_t layer_part(std::size_t layer, std::int64_t head = 0) const;
  std::size_t attention_bias(std::size_t layer) const;
  std::size_t feed_forward(std::size_t layer) const;

  void add_label(const Batch&, std::int64_t i);
  void add(std::size_t part, double sign, ConstMatrixView value);
  void add_heads(std::size_t layer, ConstMatrixView head_output);
  void apply_norm(ConstMatrixView residual);
  void compare(ConstMatrixView logits);

  const Model& model_;
  const bool centered_;  // the norms subtract the mean
  std::vector<std::string> names_;
  DoubleMatrix output_;      // (V, C): U w
  DoubleMatrix directions_;  // (V, C): the logit of a token per unit of a vector, up to the norm's scale
  // By layer: directions of head outputs (V, H Dv), the part of the attention's bias (V), and the sizes of their terms.
  std::vector<DoubleMatrix> head_directions_, head_terms_;
  std::vector<std::vector<double>> attention_biases_, attention_bias_terms_;
  std::vector<double> norm_bias_, norm_bias_terms_, output_bias_;  // (V)

  std::int64_t rows_ = 0, length_ = 0;  // B T, T
  std::vector<Reading> readings_;
  std::vector<Label> labels_;
  DoubleMatrix raw_;            // (readings, parts), before the norm's scale
  DoubleMatrix sums_;           // (labels, parts)
  std::vector<double> totals_;  // by part, over all labels
  Attribution result_;
  double worst_excess_ = 0;  // largest error / bound
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
