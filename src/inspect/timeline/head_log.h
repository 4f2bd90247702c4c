// Scores of heads during training, for train.log_heads.
#pragma once

#include "thimble/train/observer.h"

namespace thimble {

// The number of validation sequences, or all if there are fewer: enough for a label where only one query of a
// sequence is eligible.
inline constexpr std::int64_t kLoggedSequences = 128;

// Returns the function for TrainOptions::make_head_log. It runs a model of its own in evaluation mode on the
// calling thread and returns {"loss", "sequences", "labels", "chance": {score}, "attainable": {score},
// "eligible": {score}, "heads": [{"layer", "head", "scores": {score}, "eligible": {score}}]}: the mean loss over
// the labels of the sequences in nats, their numbers, and the scores of scores.h, rounded to six decimals; null
// where fewer than kEnoughQueries queries are eligible. Chance, attainable and eligible are the same for all
// heads of an encoder-only model, except that scores with a best k have none of them but "eligible" of each
// head, and that those of the last block have their own where fewer queries count. In other models each head has
// "attention", the name of its layer, and these three of its own. "heads" is
// empty when the weights are not finite. Throws DataError when the config has no validation sequences.
HeadLog head_log(const OpenConfig& config);
template <class R>  // float or double
HeadLog make_head_log(const OpenConfig& config);

}  // namespace thimble
