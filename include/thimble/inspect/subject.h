// A model and the sequences that it is looked at on. Everything that is measured of heads comes from passes
// of this kind: the model's own forward pass, in evaluation mode, in the chunks in which evaluate() goes
// through a split, whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "thimble/core/thread_pool.h"
#include "thimble/data/dataset.h"
#include "thimble/inspect/effects.h"
#include "thimble/model/transformer.h"
#include "thimble/train/run.h"

namespace thimble::inline THIMBLE_PRECISION {

// Sequences `first` and following of the split.
struct Chunk {
  std::int64_t first = 0;
  Batch batch;
};

// Hooks that know which sequences they see.
class ChunkHooks : public Hooks {
 public:
  virtual void begin(const Chunk&) {}
  virtual void end() {}  // after the pass, and after its backward pass if there is one
};

// Several hooks that watch the same passes.
class Watchers : public ChunkHooks {
 public:
  Watchers(std::initializer_list<ChunkHooks*> all) : all_(all) {}

  void begin(const Chunk& chunk) override {
    for (ChunkHooks* hooks : all_) hooks->begin(chunk);
  }
  void observe(std::string_view site, const Shape& shape, ConstMatrixView value) override {
    for (ChunkHooks* hooks : all_) hooks->observe(site, shape, value);
  }
  void end() override {
    for (ChunkHooks* hooks : all_) hooks->end();
  }

 private:
  std::vector<ChunkHooks*> all_;
};

// What the model makes of a sequence.
struct Outcome {
  double loss = 0;  // cross entropy summed over labelled positions, nats
  std::int64_t labelled = 0, correct = 0;
};

struct Outcomes {
  Baseline total;
  std::vector<Outcome> sequences;
};

// What goes into a layer, for all sequences: (sequences, T, C).
struct LayerInput {
  std::size_t layer;
  const Tensor& values;
};

class Subject {
 public:
  // The first `sequences` of the split, or as many as there are, with the weights of the source; without a
  // source, with initial values. Keeps the tokens of all of them. Throws DataError when there is none, and
  // CheckpointError when the weights do not fit the config.
  Subject(const ModelSource& source, Split split, std::int64_t sequences);
  Subject(const Config& config, Split split, std::int64_t sequences);

  const Config& config() const { return config_; }
  const Dataset& dataset() const { return dataset_; }
  const Model& model() const { return *model_; }
  Model& model() { return *model_; }
  // The model where it is an encoder, the only kind that can start at a layer; else null.
  const Transformer* encoder() const { return encoder_; }
  const std::vector<AttentionPlace>& attentions() const { return attentions_; }  // of the model
  Split split() const { return split_; }
  std::int64_t sequences() const { return sequences_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

  using MakeHooks = std::function<std::unique_ptr<ChunkHooks>()>;

  // A pass over all sequences, chunks in parallel, each with hooks of its own; only what labelled positions
  // need is computed after the last layer's attention. In training mode every chunk is followed by the
  // backward pass of the sum of its losses; dropout stays off. Without hooks, `total` has the bits of
  // evaluate(). With `from`, which is for encoders, the layers before that one are not run. Throws
  // NumericError when the loss is not finite.
  Outcomes run(const MakeHooks& make_hooks = {}, Tape::Mode mode = Tape::Mode::inference,
               const LayerInput* from = nullptr);

  // The same for one pair of eyes: all positions, one chunk after the other, in order.
  void watch(ChunkHooks& hooks);

 private:
  struct Worker {
    Tape training, inference{Tape::Mode::inference};
    AlignedVector<Real> gradients;  // of parameters, which nobody reads
  };
  struct Totals {
    double loss = 0;
    std::int64_t labelled = 0, correct = 0, correct_sequences = 0;
  };

  void refresh_transposes();
  Tape& rewound_tape(Worker& worker, Tape::Mode mode);
  Var logits(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const LayerInput* from) const;
  Totals run_chunk(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const LayerInput* from,
                   std::vector<Outcome>& outcomes) const;

  Config config_;
  Split split_;
  Dataset dataset_;
  std::unique_ptr<Model> model_;
  const Transformer* encoder_;
  std::vector<AttentionPlace> attentions_;
  Transposes transposes_;
  ThreadPool pool_;
  std::vector<Worker> workers_;
  std::int64_t sequences_;
  std::vector<Chunk> chunks_;
};

}  // namespace thimble::inline THIMBLE_PRECISION
