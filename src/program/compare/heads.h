// Matches the attention heads of two models by what they attend to.
//
// The overlap of two heads is the attention that they share: 1 - the total-variation distance of their
// weights, sum over keys of min(a, b), averaged over the queries of the same sequences. 1: the same attention;
// 0: never a common key. Queries for which one of the heads has fewer than two visible keys do not count,
// since all attention is on one key there, nor those whose outputs cannot reach the loss (scores.h).
//
// Heads are matched one to one, such that the sum of overlaps is the largest, heads of any layer with each
// other; in encoder-decoders only encoder with encoder, decoder with decoder and cross with cross.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thimble/inspect/forward_trace.h"
#include "thimble/inspect/spectral.h"

namespace thimble {

struct ModelSource;

// A head of the first model with its match in the second.
struct HeadMatch {
  HeadId head;
  // None if the second model has fewer heads, or if the overlap with the assigned head is not above chance.
  std::optional<HeadId> match{};
  double overlap = std::numeric_limits<double>::quiet_NaN();  // with the assigned head
  // Overlap with the match on another sequence of the same length: what follows from positions alone. NaN
  // where no two sequences have the same length.
  double elsewhere = std::numeric_limits<double>::quiet_NaN();
  // Chance level, see chance_levels.
  double chance = std::numeric_limits<double>::quiet_NaN();
  // That overlap and chance, and that `elsewhere` are means over.
  std::int64_t queries = 0, elsewhere_queries = 0;
};

struct HeadComparison {
  std::string obstacle{};            // why the heads cannot be compared; empty if they can
  std::int64_t sequences = 0;        // compared, the first of a test split
  std::vector<HeadMatch> matches{};  // every head of the first model, in order
  std::vector<HeadId> unmatched{};   // heads of the second model
  // The first sequences, as the first and the second model attend to them.
  std::vector<std::pair<ForwardTrace, ForwardTrace>> examples{};
  std::int64_t elsewhere = 0;  // sequences with one before of the same length, see HeadMatch::elsewhere
};

inline constexpr int kChanceModels = 19;  // untrained copies of the second model

// The attention of a model on sequences, in order.
using Attention = std::vector<ForwardTrace>;

// The overlaps (heads of the first, heads of the second model), and how many queries each is a mean over.
struct Overlaps {
  DoubleMatrix values, queries;
};

// Returns the overlaps on the same sequences, or with `shift` on a sequence of the first and another of the
// same length of the second. NaN for heads that attend to different things, or without a query that counts.
Overlaps overlaps(const ModelConfig& first, const Attention& a, const ModelConfig& second, const Attention& b,
                  bool shift = false);

// Returns for each head of the first model the overlap that a match must exceed. best[m][i]: the largest overlap of head i
// with a head of model m, of which the first is the second model and the others are untrained copies. The overlaps of a head
// are standardized by their mean and standard deviation over all these models; a match is as many deviations above the mean
// as no head is in any copy. If the second model were one more copy, each of the m models would be as likely to have the
// largest, so with 19 copies any head matches with a probability of at most 5 %.
std::vector<double> chance_levels(const std::vector<std::vector<double>>& best);

// Matches the heads of two models on the first `sequences` test sequences of the model with the shorter ones,
// and keeps `examples` of them. The models must have the same task, vocabulary and layout; encoder-decoders
// also the same lengths. Throws ConfigError if their attention does not fit into
// memory, and as trace_split.
HeadComparison compare_heads(const ModelSource& first, const ModelSource& second, std::int64_t sequences,
                             std::int64_t examples);

}  // namespace thimble
