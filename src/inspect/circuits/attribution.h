// Direct logit attribution from the hook sites of a forward pass.
#pragma once

#include <string>
#include <vector>

#include "inspect/circuits/attribution_rounding.h"
#include "thimble/inspect/circuits.h"
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
    double size = 0;  // norm of the residual stream so far, see AttributionRounding
  };
  struct Label {
    std::int64_t row;  // of the logits
    std::int32_t token;
    double residual = 0, last = 0;  // see AttributionRounding::bound
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
  DoubleMatrix directions_;  // (V, C): the logit of a token per unit of a vector, up to the norm's scale
  std::vector<DoubleMatrix> head_directions_;          // by layer (V, H Dv): the same for head outputs
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
  double worst_excess_ = 0;  // largest error / AttributionRounding::bound
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
