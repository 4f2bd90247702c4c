// Evaluates models. Training, `thimble eval`, ablation and inspection all use this forward pass, so that
// equal numbers are equal by construction. Sequences are computed in chunks that fit a core's cache, on all
// threads; no result depends on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "thimble/engine/model.h"
#include "thimble/train/config.h"
#include "thimble/train/dataset.h"
#include "thimble/train/prediction.h"
#include "thimble/train/ranks.h"
#include "thimble/train/safetensors.h"
#include "train/files/progress.h"
#include "train/files/thread_pool.h"
#include "train/step/chunk_hooks.h"
#include "train/step/eval_sums.h"
#include "train/step/forward.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The input (sequences, T, C) of a block of the model; for a decoder block, also the encoder's output.
struct BlockInput {
  std::size_t block = 0;
  Tensor values;
  std::optional<Tensor> memory;
};

// A model with its dataset, threads and tapes.
class Evaluator {
 public:
  // Builds the config's model with its initial values, or with the weights of a file. Throws DataError when the
  // task does not suit the output, and CheckpointError when the weights do not fit the config.
  explicit Evaluator(const OpenConfig& config);
  Evaluator(const OpenConfig& config, const SafetensorsFile& weights);

  const OpenConfig& config() const { return config_; }
  const Dataset& dataset() const { return dataset_; }
  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  ThreadPool& pool() { return pool_; }
  int threads() const { return pool_.threads(); }
  PackedWeights& packed_weights() { return packed_weights_; }
  // Packs the weights for all further passes, between which they must not change.
  void pack_for_all();
  std::int64_t chunk_size() const { return chunk_size_; }  // sequences that are computed at once

  // Evaluates a whole split, or its first `limit` sequences; an unlimited split requires a limit. Checks for a
  // leak except on a finite training split, whose sequences the model was trained on. `predictions`, unless null,
  // is set to the answers that the result counts, in order. Several ranks, which must all call it, compute some of the
  // sequences each and return the same result; they make no predictions.
  EvalResult evaluate(Split split, std::int64_t limit = 0, std::vector<Prediction>* predictions = nullptr,
                      Ranks& ranks = one_process());

  // Selects the first sequences of a split, at most as many as it has, for the functions below, and stores
  // their tokens. Throws DataError when there are none.
  void select(Split split, std::int64_t sequences);
  Split split() const { return split_; }
  std::int64_t sequences() const { return sequences_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

  // Caps the loss of a label, in nats, for SequenceResult::capped_loss of run() and run_series(), from now on.
  void cap_loss(double nats) { loss_cap_ = nats; }
  double loss_cap() const { return loss_cap_; }
  // Returns the most labels of a draw, among the selected sequences and the first 10,000 of training.
  std::int64_t most_labels() const { return most_labels_; }
  const EqualInputs& equal_inputs() const { return equal_inputs_; }  // of the selected sequences

  // Makes every later pass advance the counter by its cost, in passes over the whole model.
  void report_to(ProgressCounter& counter) { progress_ = &counter; }
  // Return the cost of a pass, the share of it from a block on, and the cost of observe(), in passes without
  // gradients.
  static double pass_cost(Tape::Mode mode) { return mode == Tape::Mode::training ? 3 : 1; }
  double share_from(std::size_t block) const;
  double observe_cost() const { return pool_.threads(); }

  // Calls f(i, tape) for every i below count, on all threads. The tape is bound to the parameters and has none of their
  // gradients.
  using Work = std::function<void(std::size_t i, Tape& tape)>;
  void each(std::size_t count, const Work& f, Tape::Mode mode = Tape::Mode::inference);

  using MakeHooks = std::function<std::unique_ptr<ChunkHooks>()>;

  // Runs a pass over the selected sequences, chunks in parallel, each with its own hooks; after the last
  // attention, only labeled positions are computed. In training mode, the backward pass of its summed losses
  // follows every chunk, without dropout. Without hooks, the result has the same bits as that of evaluate().
  // With `from`, the pass starts at that block. Throws NumericError when the loss is not finite.
  EvalResult run(const MakeHooks& make_hooks = {}, Tape::Mode mode = Tape::Mode::inference,
                 const BlockInput* from = nullptr);

  // Return tensors for the input of a block for that many sequences, and the sites to capture them from. Only
  // for models with blocks, see Model::blocks().
  BlockInput block_input(std::size_t block, std::int64_t sequences) const;
  Capture::Sites input_sites(BlockInput& input) const;

  // Runs a series of passes, all of them over a chunk before the next chunk. Pass k has its own hooks, which
  // must not change anything before block blocks[k], so that it starts there with the inputs that earlier
  // passes captured. Results have those of each sequence.
  using MakeSeriesHooks = std::function<std::unique_ptr<ChunkHooks>(std::size_t k)>;
  std::vector<EvalResult> run_series(std::span<const std::size_t> blocks, const MakeSeriesHooks& make_hooks);

  // Runs a pass over all positions of the selected sequences, chunk by chunk, on one thread.
  void observe(ChunkHooks& hooks);

 private:
  struct Worker {
    Tape training, inference{Tape::Mode::inference};
    AlignedVector<Real> gradients;  // of parameters; not used
  };

  void advance(double passes, const Chunk& chunk) const;
  Var logits(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const BlockInput* from) const;
  EvalSums run_chunk(Split split, const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const BlockInput* from,
                     std::span<SequenceResult> per_sequence, std::span<Prediction> predictions = {}) const;
  // Sets the predictions of a chunk, but for generated answers, from its logits (R, V) of labeled positions.
  void predict(Split split, const Chunk& chunk, ConstMatrixView logits, std::span<Prediction>) const;
  // Returns the number of sequences whose whole target greedy decoding generates. Completes the predictions
  // of the batch unless there are none.
  std::int64_t count_exact_matches(const Batch& batch, std::span<Prediction>) const;

  OpenConfig config_;
  Dataset dataset_;
  std::unique_ptr<Model> model_;
  PackedWeights packed_weights_;
  bool packed_for_all_ = false;
  ThreadPool pool_;
  std::int64_t chunk_size_;  // sequences
  std::vector<Worker> workers_;
  std::optional<std::int32_t> usual_answer_;  // set by the first evaluation
  Split split_ = Split::test;
  std::int64_t sequences_ = 0;
  std::vector<Chunk> chunks_;
  EqualInputs equal_inputs_;
  double loss_cap_ = kNoCap;
  std::int64_t most_labels_ = 0;  // set by the first selection
  ProgressCounter* progress_ = nullptr;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
