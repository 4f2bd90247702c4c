// A model and how well it does: the one forward pass of training's evaluations, `thimble eval`, ablation and
// inspection, so that equal numbers are equal by construction. Sequences are computed in chunks that fit a
// core's cache, on all threads; no result depends on their number.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "thimble/core/progress.h"
#include "thimble/core/thread_pool.h"
#include "thimble/data/dataset.h"
#include "thimble/model/model.h"
#include "thimble/train/eval_sums.h"
#include "thimble/train/run.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The dataset that a config's task and output describe.
Dataset make_dataset(const Config& config);

// The model that the config describes, for such data.
std::unique_ptr<Model> make_model(const ModelConfig&, const Dataset&);

// The sequences of a batch, which must outlive the pass.
ModelInput model_input(const Batch&);

// The same, for the logits (R, V) of labelled positions alone, whose labels are batch.row_labels.
ModelInput labelled_input(const Batch&);

// Returns the loss (1) of the logits (R, V) of a batch's labelled positions, summed over them, and adds what
// they predict to the sums. `per_sequence`, if any, gets the result of each sequence.
Var add_loss(Var logits, const Batch&, Real label_smoothing, EvalSums&,
             std::span<SequenceResult> per_sequence = {});

// Sequences `first` and following of a split.
struct Chunk {
  std::int64_t first = 0;
  Batch batch;
};

// Hooks that know which sequences a pass is over.
class ChunkHooks : public Hooks {
 public:
  virtual void begin(const Chunk&) {}
  virtual void end() {}  // after the pass, and after its backward pass if there is one
};

// Several hooks that observe the same passes.
class Observers : public ChunkHooks {
 public:
  Observers(std::initializer_list<ChunkHooks*> all) : all_(all) {}

  void begin(const Chunk& chunk) override {
    for (ChunkHooks* hooks : all_) hooks->begin(chunk);
  }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    for (ChunkHooks* hooks : all_) hooks->observe(site, shape, value);
  }
  void end() override {
    for (ChunkHooks* hooks : all_) hooks->end();
  }

 private:
  std::vector<ChunkHooks*> all_;
};

// Copies the values of some sites into tensors (sequences, T, columns).
class Capture : public ChunkHooks {
 public:
  using Sites = std::multimap<Site, Tensor*>;
  explicit Capture(const Sites& sites) : sites_(sites) {}

  void begin(const Chunk& chunk) override { first_ = chunk.first; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;

 private:
  const Sites& sites_;
  std::int64_t first_ = 0;
};

// The input of a block of the model: (sequences, time, C); for one of a decoder, the encoder's output too.
struct BlockInput {
  std::size_t block = 0;
  Tensor values;
  std::optional<Tensor> memory;
};

class Evaluator {
 public:
  // The config's model with its initial values, or the model of the source. Throws DataError when the task
  // does not fit the output, and CheckpointError when the weights do not fit the config.
  explicit Evaluator(const Config& config);
  explicit Evaluator(const ModelSource& source);

  const Config& config() const { return config_; }
  const Dataset& dataset() const { return dataset_; }
  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  ThreadPool& pool() { return pool_; }
  int threads() const { return pool_.threads(); }
  Transposes& transposes() { return transposes_; }

  // Evaluates on a whole split, or on its first `limit` sequences; endless splits need a limit. Looks for
  // leaks where sequences are fresh: not those of a finite training split.
  EvalResult evaluate(Split split, std::int64_t limit = 0);

  // The rest is about chosen sequences: the first of a split, or as many as there are, whose tokens are kept.
  // Throws DataError when there is none.
  void select(Split split, std::int64_t sequences);
  Split split() const { return split_; }
  std::int64_t sequences() const { return sequences_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

  // From now on every pass advances the counter, by the passes over the whole model that it costs.
  void report_to(ProgressCounter& counter) { progress_ = &counter; }
  // The cost of a pass, of one that starts at that block, and of observe(), in passes without gradients.
  static double pass_cost(Tape::Mode mode) { return mode == Tape::Mode::training ? 3 : 1; }
  double share_from(std::size_t block) const;
  double observe_cost() const { return pool_.threads(); }

  using MakeHooks = std::function<std::unique_ptr<ChunkHooks>()>;

  // A pass over the chosen sequences, chunks in parallel, each with hooks of its own; after the last
  // attention only what labelled positions need is computed. In training mode every chunk is followed by the
  // backward pass of the sum of its losses; dropout stays off. Without hooks, the result has the bits of
  // evaluate(). With `from`, the blocks before that one are not run. Throws NumericError when the loss is not
  // finite.
  EvalResult run(const MakeHooks& make_hooks = {}, Tape::Mode mode = Tape::Mode::inference,
                 const BlockInput* from = nullptr);

  // Tensors for the input of a block, for that many sequences, and the sites where they are captured. For
  // models with blocks, see Model::blocks().
  BlockInput block_input(std::size_t block, std::int64_t sequences) const;
  Capture::Sites input_sites(BlockInput& input) const;

  // Passes one after the other, all of them over a chunk before those over the next: the k-th has hooks of
  // its own and differs from the one before from that block on, so it starts there with what the passes
  // before have left.
  using MakeSeriesHooks = std::function<std::unique_ptr<ChunkHooks>(std::size_t k)>;
  std::vector<EvalResult> run_series(std::span<const std::size_t> blocks, const MakeSeriesHooks& make_hooks);

  // Passes over all positions of the chosen sequences, one chunk after the other, in order, on one thread.
  void observe(ChunkHooks& hooks);

 private:
  struct Worker {
    Tape training, inference{Tape::Mode::inference};
    AlignedVector<Real> gradients;  // of parameters, which nobody reads
    Chunk chunk;
  };

  // Returns f(i, worker), on all threads, for i in 0 .. count-1.
  template <class F>
  std::vector<EvalSums> each_chunk(std::size_t count, const F& f);
  void advance(double passes, const Chunk& chunk) const;
  Tape& rewound_tape(Worker& worker, Tape::Mode mode);
  Var logits(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const BlockInput* from) const;
  EvalSums run_chunk(Split split, const Chunk& chunk, ChunkHooks* hooks, Tape& tape,
                     const BlockInput* from = nullptr, std::span<SequenceResult> per_sequence = {}) const;
  std::int64_t count_exact_matches(const Batch& batch) const;  // answers that the model writes right

  Config config_;
  Dataset dataset_;
  std::unique_ptr<Model> model_;
  Transposes transposes_;
  ThreadPool pool_;
  std::int64_t chunk_size_;  // sequences
  std::vector<Worker> workers_;
  std::optional<std::int32_t> usual_answer_;  // once an evaluation needs it
  Split split_ = Split::test;
  std::int64_t sequences_ = 0;
  std::vector<Chunk> chunks_;
  ProgressCounter* progress_ = nullptr;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
