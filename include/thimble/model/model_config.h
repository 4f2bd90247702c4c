// What a model is made of. Plain values; the config room parses and checks them.
#pragma once

#include <cstdint>

namespace thimble {

enum class NormOrder { pre, post };
enum class Activation { relu, gelu, gelu_tanh, tanh };
enum class Positions { sinusoidal, learned, none };
enum class Mask { none, causal };
enum class OutputPer { position, sequence, next };
enum class Pooling { mean, first, last };

struct AttentionConfig {
  Mask mask = Mask::none;
  double dropout = 0;  // of the attention weights, in [0, 1)
};

struct OutputConfig {
  OutputPer per = OutputPer::position;
  std::int64_t hidden = 0;          // width of the output net's hidden layer; 0: one linear layer
  Pooling pooling = Pooling::mean;  // used per sequence only
};

struct ModelConfig {
  std::int64_t d_model = 32;
  std::int64_t heads = 1;
  std::int64_t layers = 1;
  std::int64_t d_ff = 64;
  std::int64_t max_length = 0;  // longest sequence; 0: what the task needs
  NormOrder norm = NormOrder::post;
  Activation activation = Activation::relu;
  Positions positions = Positions::sinusoidal;
  double embedding_std = 1;  // standard deviation of token embeddings at the start; 1 is PyTorch's
  double position_std = 1;   // the same for learned positions
  AttentionConfig attention;
  double dropout = 0;  // of the embedding and of every sub-layer's output, in [0, 1)
  OutputConfig output;
};

}  // namespace thimble
