// The config of a model. Plain values; the config room parses and checks them.
#pragma once

#include <cstdint>

#include "thimble/engine/attention_config.h"

namespace thimble {

enum class ModelKind {
  encoder,          // one output per position, or one per sequence
  encoder_decoder,  // sequence to sequence (Vaswani et al. 2017)
  recurrent,        // sequence to sequence with GRUs (Bahdanau et al. 2015)
};
enum class NormOrder { pre, post };
enum class NormType { layer, rms };
enum class Activation { relu, gelu, gelu_tanh, tanh, silu };
enum class Mixer { attention, convolution };
enum class OutputPer { position, sequence, next };
enum class Pooling { mean, first, last };

// The config of the output net.
struct OutputConfig {
  OutputPer per = OutputPer::position;
  std::int64_t hidden = 0;          // width of the output net's hidden layer; 0: one linear layer
  Pooling pooling = Pooling::mean;  // of one output per sequence
  bool tied = false;                // the weight of the output is that of the token embedding
};

// The config of a model.
struct ModelConfig {
  ModelKind kind = ModelKind::encoder;
  std::int64_t d_model = 32;
  std::int64_t heads = 1;
  std::int64_t layers = 1;
  std::int64_t d_ff = 64;       // 0: layers of attention alone
  std::int64_t max_length = 0;  // of a sequence; 0: that of the task
  NormOrder norm = NormOrder::post;
  NormType norm_type = NormType::layer;
  bool norm_weight = true;      // norms have a weight; false: nor a bias
  bool norm_embedding = false;  // another norm after the embedding
  bool norm_final = true;       // of a pre-norm model: another norm before the output
  bool bias = true;             // of linear layers, convolutions and layer norms
  double norm_epsilon = 1e-5;   // added to the variance, or mean square, in every norm; PyTorch's is 1e-5
  Activation activation = Activation::relu;
  bool gated = false;  // gated feed-forward net (Shazeer 2020)
  Positions positions = Positions::sinusoidal;
  double embedding_std = 1;  // standard deviation of initial token embeddings; PyTorch's is 1
  double position_std = 1;   // standard deviation of initial learned positions
  // Standard deviation of all initial matrices, embeddings included, with biases 0; 0: those above and PyTorch's.
  double init_std = 0;
  // Divides that of the projections into the residual stream by sqrt(2 layers) (Radford et al. 2019, 2.3).
  bool init_scaled = false;
  Mixer mixer = Mixer::attention;
  std::int64_t window = 3;  // positions in the window of a convolution
  AttentionConfig attention{};
  double dropout = 0;  // of the embedding and of every sub-layer's output, in [0, 1)
  OutputConfig output{};
  // Rows of trained tables of learned positions, of the sequence and of the source; 0: as the task needs.
  std::int64_t trained_length = 0, trained_source_length = 0;

  AttentionSizes attention_sizes() const { return resolve(attention, d_model, heads); }
};

// The sizes of the inputs and outputs of a model.
struct ModelSizes {
  std::int64_t vocabulary;         // V
  std::int64_t length;             // the longest sequence, T
  std::int64_t source_length = 0;  // the longest source, S, of an encoder-decoder
  std::int64_t outputs = 0;        // of an encoder; 0: one for each token of the vocabulary
};

}  // namespace thimble
