// Results of training and of evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/json.h"
#include "thimble/train/source.h"

namespace thimble {

// The result of a model on one sequence.
struct SequenceResult {
  double loss = 0;  // cross entropy summed over labeled positions, nats
  std::int64_t labeled = 0, correct = 0;
  double capped_loss = 0;  // the same sum, of which no position adds more than Evaluator::loss_cap()
  // Labeled positions whose answer can be known, and those of them that are right; 0: none, or the task does not state them.
  std::int64_t knowable = 0, knowable_correct = 0;
};

// The losses of n-gram models, in nats per labeled position: of the same tokens, with the context that each has in
// its sequence. A 5-gram reads 4 tokens. Smoothed by Kneser-Ney, see train/data/corpus/ngram.h.
struct References {
  double unigram = 0, bigram = 0, five_gram = 0;
  std::int64_t counted = 0, of = 0;  // training tokens: those that were counted, and all; boundaries included
};

// The result of a model on a set of sequences.
struct EvalResult {
  double loss = 0;                         // mean cross entropy per labeled position, nats
  double accuracy = 0;                     // share of labeled positions predicted correctly
  double sequence_accuracy = 0;            // share of sequences with every labeled position correct
  std::int64_t sequences = 0, labels = 0;  // labels: labeled positions
  // Standard errors from the spread between draws of the data, of which sequences of data files with equal inputs are one
  // together; none for fewer than two draws.
  std::optional<double> loss_error{}, accuracy_error{};
  std::int64_t distinct = 0;  // how many draws the sequences are
  // The lowest possible loss, if the loss is below it by more than 4 standard errors on at least
  // kEnoughSequences that are drawn apart from those of training: labels must have leaked into the input.
  std::optional<double> leak{};
  // Accuracy of the best constant answer; missing when the training data of a file is missing.
  std::optional<double> chance{};
  // The lowest possible loss on new sequences, if the task states it.
  std::optional<double> lowest_loss{};
  // Of decoders: the share of sequences whose whole target greedy decoding generates from the source. The
  // numbers above are those of teacher forcing.
  std::optional<double> exact_match{};
  // What n-grams of the training text reach; none for a task without a text.
  std::optional<References> references{};
  std::vector<SequenceResult> per_sequence{};  // only from run() and run_series() of Evaluator

  static constexpr std::int64_t kEnoughSequences = 30;  // whose spread is known well enough to warn of a leak
  static constexpr double kInterval =
      1.959964;  // half-width of a 95 % confidence interval, in standard errors
  // Returns half of the 95 % confidence interval of the accuracy, which must have a standard error; where all answers are
  // wrong or all are right, what Clopper and Pearson's interval of as many draws reaches.
  double accuracy_margin() const;
  // Returns whether that interval includes chance or lies below it; false where there is no interval.
  bool no_better_than_chance() const {
    return chance && accuracy_error && accuracy - accuracy_margin() <= *chance;
  }
};

// Returns the bits of a loss in nats.
double bits(double loss);

// The result of a training step.
struct StepReport {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // mean over the step's labeled positions, before the update
  double accuracy = 0;
  double sequence_accuracy = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // global, before clipping
  // The step's sequences and the labeled positions in them; 0: unknown, from a checkpoint without them.
  std::int64_t sequences = 0, labels = 0;
};

// Why training ended.
enum class Stopped { at_last_step, at_target, out_of_patience, interrupted };
std::string_view stopped_name(Stopped);  // "last step", "target", "patience", "interrupted"

// The result of training.
struct TrainResult {
  std::int64_t steps = 0;
  Stopped stopped = Stopped::at_last_step;
  bool target_missed = false;  // the config has a target, and the last evaluation missed it
  StepReport train;            // of the last step
  std::optional<EvalResult> validation, test;
  std::int64_t best_step = 0;  // of the lowest validation loss; 0 without validation
  double best_loss = 0;
  // What the last step measured, where validation, test and weights_hash are those of the best checkpoint: with
  // train.patience in a run directory, if that is not the last.
  struct Final {
    std::optional<EvalResult> validation, test;
    std::string weights_hash;
  };
  std::optional<Final> final{};
  // How sequences of a split coincide with training, if the splits are not disjoint.
  Coincidences shared_validation, shared_test;
  std::string weights_hash;  // XXH3-64 of the parameters
  // "fused" or "separate", see engine/kernels/arithmetic.h, or "openblas"; of several parts all, with commas.
  std::string arithmetic;
  std::int64_t parameters = 0;
  double seconds = 0;  // over all sessions of the run
  int threads = 0, ranks = 1;
  std::string directory;  // of the run; empty: none
};

Json to_json(const StepReport&);
Json to_json(const EvalResult&);
Json to_json(const TrainResult&);

}  // namespace thimble
