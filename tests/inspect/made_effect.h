// Effects with chosen numbers.
#pragma once

#include "thimble/inspect/effects.h"

namespace thimble {

// Returns an effect whose capped loss changes as the loss does.
constexpr Effect made_effect(double loss, double accuracy, Interval of_loss, Interval of_accuracy,
                             double p = 1, double accuracy_p = 1) {
  return {loss, of_loss, {accuracy, of_accuracy, accuracy_p}, {loss, of_loss, p}, 100, 100};
}

}  // namespace thimble
