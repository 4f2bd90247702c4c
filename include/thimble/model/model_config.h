// What a model is made of. Plain values; the config room parses and checks them.
#pragma once

#include <cstdint>

#include "thimble/nn/attention_config.h"

namespace thimble {

enum class ModelKind {
  encoder,          // reads a sequence and answers at its positions, or for all of it
  encoder_decoder,  // reads one sequence and writes another (Vaswani et al. 2017)
  recurrent,        // does so with GRUs (Bahdanau et al. 2015)
};
enum class NormOrder { pre, post };
enum class NormType { layer, rms };
enum class Activation { relu, gelu, gelu_tanh, tanh, silu };
enum class Mixer { attention, convolution };
enum class OutputPer { position, sequence, next };
enum class Pooling { mean, first, last };

struct OutputConfig {
  OutputPer per = OutputPer::position;
  std::int64_t hidden = 0;          // width of the output net's hidden layer; 0: one linear layer
  Pooling pooling = Pooling::mean;  // used per sequence only
};

struct ModelConfig {
  ModelKind kind = ModelKind::encoder;
  std::int64_t d_model = 32;
  std::int64_t heads = 1;
  std::int64_t layers = 1;
  std::int64_t d_ff = 64;       // 0: layers of attention alone
  std::int64_t max_length = 0;  // longest sequence; 0: what the task needs
  NormOrder norm = NormOrder::post;
  NormType norm_type = NormType::layer;
  Activation activation = Activation::relu;
  bool gated = false;  // the feed-forward net's hidden layer times a linear one (Shazeer 2020)
  Positions positions = Positions::sinusoidal;
  double embedding_std = 1;  // standard deviation of token embeddings at the start; 1 is PyTorch's
  double position_std = 1;   // the same for learned positions
  Mixer mixer = Mixer::attention;
  std::int64_t window = 3;  // positions that a convolution sees
  AttentionConfig attention{};
  double dropout = 0;  // of the embedding and of every sub-layer's output, in [0, 1)
  OutputConfig output{};
  // Rows of learned position tables that are trained already, of the sequence and of the source; 0: as many
  // as the task needs.
  std::int64_t trained_length = 0, trained_source_length = 0;

  AttentionSizes attention_sizes() const { return resolve(attention, d_model, heads); }
};

// Sizes of what a model reads: the number of tokens, V; the longest sequence, T; the longest source, S, of
// an encoder-decoder.
struct ModelSizes {
  std::int64_t vocabulary;
  std::int64_t length;
  std::int64_t source_length = 0;
};

}  // namespace thimble
