// A model and the sequences that it is looked at on. Everything that is measured of heads comes from passes
// of this kind: the model's own forward pass, in evaluation mode, in the chunks in which evaluate() goes
// through a split, whatever the number of threads.
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
#include "thimble/inspect/effects.h"
#include "thimble/model/encoder_decoder.h"
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
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
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

// What goes into a layer of the model's stack, which is the encoder's layers and then the decoder's:
// (sequences, time, C). A layer of a decoder takes what the encoder made of the sources, too.
struct LayerInput {
  std::size_t layer = 0;
  Tensor values;
  std::optional<Tensor> memory;
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
  // The model where it is an encoder; else null.
  const Transformer* encoder() const { return encoder_; }
  Split split() const { return split_; }
  std::int64_t sequences() const { return sequences_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }

  // From now on every pass advances the counter, by the passes over the whole model that it costs.
  void report_to(ProgressCounter& counter) { progress_ = &counter; }
  // What a whole pass costs, in passes without gradients.
  static double pass_cost(Tape::Mode mode) { return mode == Tape::Mode::training ? 3 : 1; }
  // What a pass from that attention's layer on costs, see run().
  double share_from(std::size_t attention) const;
  // What watch() costs, which computes on one thread.
  double watch_cost() const { return pool_.threads(); }

  using MakeHooks = std::function<std::unique_ptr<ChunkHooks>()>;

  // A pass over all sequences, chunks in parallel, each with hooks of its own; only what labelled positions
  // need is computed after the last layer's attention. In training mode every chunk is followed by the
  // backward pass of the sum of its losses; dropout stays off. Without hooks, `total` has the bits of
  // evaluate(). With `from`, the layers before that one are not run. Throws NumericError when the
  // loss is not finite.
  Outcomes run(const MakeHooks& make_hooks = {}, Tape::Mode mode = Tape::Mode::inference,
               const LayerInput* from = nullptr);

  // The layer of the stack that the attention is in; nothing where passes cannot start at a layer, as those
  // of recurrent models.
  std::optional<std::size_t> stack_layer(std::size_t attention) const;
  // Room for the input of that layer, for that many sequences, and the sites where its parts are found.
  LayerInput layer_input(std::size_t layer, std::int64_t sequences) const;
  std::multimap<Site, Tensor*> input_sites(LayerInput& input) const;

  // Passes one after the other, all of them over a chunk before those over the next: the k-th has hooks of
  // its own and differs from the one before in that attention's layer and those after it, so it starts there
  // with what the passes before have left.
  using MakeSeriesHooks = std::function<std::unique_ptr<ChunkHooks>(std::size_t k)>;
  std::vector<Baseline> run_series(std::span<const std::size_t> attentions,
                                   const MakeSeriesHooks& make_hooks);

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
  void advance(double passes, const Chunk& chunk) const;
  Tape& rewound_tape(Worker& worker, Tape::Mode mode);
  // `first` is the number of the chunk's first sequence in `from` and in `outcomes`.
  Var logits(const Chunk& chunk, std::int64_t first, ChunkHooks* hooks, Tape& tape,
             const LayerInput* from) const;
  Totals run_chunk(const Chunk& chunk, std::int64_t first, ChunkHooks* hooks, Tape& tape,
                   const LayerInput* from, std::span<Outcome> outcomes) const;
  Baseline mean(std::span<const Totals> chunks) const;
  std::size_t stack_layers() const;
  double share_of_layer(std::size_t layer) const;

  Config config_;
  Split split_;
  Dataset dataset_;
  std::unique_ptr<Model> model_;
  const Transformer* encoder_;
  const EncoderDecoder* pair_;
  Transposes transposes_;
  ThreadPool pool_;
  std::vector<Worker> workers_;
  std::int64_t sequences_;
  std::vector<Chunk> chunks_;
  ProgressCounter* progress_ = nullptr;
};

}  // namespace thimble::inline THIMBLE_PRECISION
