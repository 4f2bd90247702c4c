// Activation and path patching of a model: on test sequences, each with another one or with itself corrupted, or on pairs of
// your own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/inspect/edges.h"
#include "thimble/inspect/patching_report.h"

namespace thimble {

struct ModelSource;

inline constexpr std::int64_t kUsualPairs = 100;
inline constexpr std::int64_t kCandidates = 1000;  // test sequences that pairs are drawn from, at least

// A pair of texts, each as trace_input() takes it. Their labels are the model's own answers to them.
struct TextPair {
  std::string clean, corrupted;
  // Positions of the answers that count, from 0. Empty: the last one if answers occur later in the input, otherwise all.
  std::vector<std::int64_t> positions{};
  std::string where{};  // "FILE:LINE: ", in messages
};

// Reads JSON Lines of {"clean": "...", "corrupted": "...", "positions": [...]}, the last of which may be missing. Throws
// DataError, with file and line.
std::vector<TextPair> read_text_pairs(const std::string& file);

// Which pairs are measured.
struct PairChoice {
  std::int64_t pairs = kUsualPairs;  // of test sequences, at most
  // What the corrupted input is to the clean one, a test sequence:
  //   resample  another test sequence of the same length, with other labels at the same positions
  //   token K   itself with the token at position K of another test sequence in place of its own
  //   order     itself, shuffled but for a token that marks the beginning of texts
  //   target    itself with two tokens exchanged that queries find their answers behind, so that the answers are exchanged
  std::string corruption = "resample";
  std::vector<TextPair> texts{};  // in place of test sequences
};

// Throws ConfigError when there is no such corruption.
void check_corruption(const std::string& name);

// The functions below require heads (ConfigError) and weights that match the config (CheckpointError).

// Patches the heads of one pair of test sequences. Throws DataError when there is no such sequence, when
// lengths or the positions of labels differ, or when all labels are equal.
PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted);

// Patches the heads of pairs. Throws DataError when there is none, or when a text is not an input of the model.
PatchingReport patch_pairs(const ModelSource& model, const PairChoice& choice = {});

// Measures the edges of an encoder on pairs. Throws as patch_pairs, and ConfigError for another kind of model.
EdgesReport patch_edges(const ModelSource& model, const PairChoice& choice = {});

}  // namespace thimble
