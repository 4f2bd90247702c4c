// Scores the heads while a model trains, for train.log_heads.
#pragma once

#include "thimble/train/train.h"

namespace thimble {

// The first validation sequences, as many as there are up to this: enough for a label where only one query of
// a sequence is eligible.
inline constexpr std::int64_t kLoggedSequences = 128;

// For TrainOptions.make_head_log. The log has a model of its own, runs it in evaluation mode on the calling
// thread, and gives {"loss", "chance": {score}, "attainable": {score}, "heads": [{"layer", "head", "scores":
// {score}}]}: the mean loss of those sequences in nats and the scores of scores.h, rounded to six decimals;
// null where fewer than kEnoughQueries queries are eligible. Chance and attainable are the same for all heads
// and left out of scores with a best k. Unless the model has an encoder only, heads have an "attention",
// the name of their layer, and "chance" and "attainable" of their own, which then are not the same for all. A model
// whose weights are not finite has no heads here. Throws DataError when the config has no validation
// sequences.
HeadLog head_log(const Config& config);

}  // namespace thimble
