// Sums of an evaluation over sequences, and the result computed from them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "thimble/train/dataset.h"
#include "thimble/train/results.h"

namespace thimble {

// Sums of squares and products over draws of the data, for standard errors. Sequences of data files that follow each other
// and have equal inputs are one draw: files have them side by side.
struct DrawSums {
  struct Draw {
    std::uint64_t input = 0;
    double labeled = 0, correct = 0, loss = 0;
  };
  std::int64_t draws = 0;
  double correct_squared = 0, correct_labeled = 0, labeled_squared = 0, loss_squared = 0, loss_labeled = 0;
  Draw first{}, last{};

  void add_draw(const Draw&);
  void add(const DrawSums& next);  // of the sequences that follow

 private:
  void add_products(const Draw& a, const Draw& b, double times);
};

// Sums over sequences.
struct EvalSums {
  double loss = 0;  // cross entropy, nats
  std::int64_t labeled = 0, correct = 0, correct_sequences = 0;
  std::int64_t exact_matches = 0;  // sequences whose whole target greedy decoding generates
  std::int64_t usual = 0;          // labels equal to the usual answer
  DrawSums spread{};               // of evaluations

  void add(const EvalSums& other);
  double labels() const {
    return static_cast<double>(labeled > 0 ? labeled : 1);
  }  // at least 1, as a divisor
};

// Returns the means over `sequences`, summed in chunks, with their standard errors.
EvalResult mean_of(std::span<const EvalSums> chunks, std::int64_t sequences);

// Returns the most frequent label of the training sequences, if Task::chance does not apply: for data files,
// and for targets that end in <end>. Returns kIgnore when the training sequences are missing, nothing for
// other tasks.
std::optional<std::int32_t> usual_answer(const Dataset&);

// The inputs of sequences. For intervals, those of data files that are equal are one draw of the data: they are in one split.
struct EqualInputs {
  bool merges = false;                 // else each is one of its own
  std::vector<std::int64_t> of{};      // the number of its input, by sequence
  std::vector<std::int64_t> labels{};  // by input
  std::map<std::vector<std::int32_t>, std::int64_t> numbers{};

  void add(const Batch&);
  std::int64_t most_labels() const { return labels.empty() ? 1 : std::ranges::max(labels); }
};

// Returns the most labels of an input among the first 10,000 sequences of training or, of rows without training, of the test
// split.
std::int64_t most_labels(const Dataset&);

// Returns the lowest loss that a model can reach on new sequences of the split, if the task states it.
std::optional<double> lowest_loss(const Dataset&, Split);

}  // namespace thimble
