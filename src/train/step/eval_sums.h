// Sums of an evaluation over sequences, and the result computed from them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thimble/train/dataset.h"
#include "thimble/train/results.h"

namespace thimble {

// Returns a number that two sequences in a row have in common if they are one draw of the data: those of data files with equal
// inputs, which are side by side in one split. `index`: in the split.
std::uint64_t draw_number(const Dataset&, const Batch&, std::int64_t sequence, std::int64_t index);

// Sums of squares and products over draws of the data, for standard errors.
struct DrawSums {
  struct Draw {
    std::uint64_t number = 0;
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

// The draws that sequences in a row are.
struct EqualInputs {
  std::vector<std::int64_t> of{};      // the draw, by sequence
  std::vector<std::int64_t> labels{};  // by draw
  std::uint64_t last = 0;              // number of the last draw

  // Adds the sequences of a batch, which are those of the split from `first` on.
  void add(const Dataset&, const Batch&, std::int64_t first);
  std::int64_t most_labels() const { return labels.empty() ? 1 : std::ranges::max(labels); }
};

// Returns the most labels of a draw among the first 10,000 sequences of training or, of rows without training, of the test
// split.
std::int64_t most_labels(const Dataset&);

// Returns the lowest loss that a model can reach on new sequences of the split, if the task states it.
std::optional<double> lowest_loss(const Dataset&, Split);

}  // namespace thimble
