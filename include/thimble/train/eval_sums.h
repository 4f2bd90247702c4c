// What an evaluation adds up over sequences, and the result that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "thimble/data/dataset.h"
#include "thimble/train/train.h"

namespace thimble {

struct EvalSums {
  double loss = 0;  // cross entropy, nats
  std::int64_t labelled = 0, correct = 0, correct_sequences = 0;
  std::int64_t exact_matches = 0;  // answers that greedy decoding gets right from beginning to end
  std::int64_t usual = 0;          // labels that are the usual answer
  // Sums over sequences of their correct and labelled positions, squared and multiplied.
  std::int64_t correct_squared = 0, correct_labelled = 0, labelled_squared = 0;

  void add(const EvalSums& other);
  // Adds a sequence, or its part with these labels, with its loss left out.
  void add_sequence(std::int64_t its_labelled, std::int64_t its_correct);
  double labels() const { return static_cast<double>(labelled > 0 ? labelled : 1); }  // to divide by
};

// Returns the mean over so many sequences, which were summed in chunks, with its standard errors.
EvalResult mean_of(std::span<const EvalSums> chunks, std::int64_t sequences);

// Returns the answer that training sequences have most often, where the task itself does not say how good a
// constant answer is: for own data, and answers that have an end. kIgnore when the training sequences are
// gone; nothing for other tasks.
std::optional<std::int32_t> usual_answer(const Dataset&);

// Returns the lowest loss that the task allows on fresh sequences of the split, where it is known.
std::optional<double> lowest_loss(const Dataset&, Split);

}  // namespace thimble
