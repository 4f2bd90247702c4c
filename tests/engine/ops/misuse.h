// Calls of ops that must throw, and parts of their messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/ops.h"

namespace thimble::tests {

struct Misuse {
  std::function<void(Tape&)> call;
  std::vector<std::string> says;
};

// Returns a leaf of this shape, or of these sizes.
inline Var of(Tape& tape, const Shape& shape) { return tape.variable(Tensor(shape)); }
template <class... Sizes>
Var of(Tape& tape, Sizes... sizes) {
  return of(tape, Shape{sizes...});
}

inline void expect_refused(const std::vector<Misuse>& misuses) {
  for (const Misuse& misuse : misuses) {
    Tape tape;
    std::string message = "accepted";
    try {
      misuse.call(tape);
    } catch (const ShapeError& e) {
      message = e.what();
    }
    for (const std::string& part : misuse.says) CHECK_THAT(message, ContainsSubstring(part));
  }
}

}  // namespace thimble::tests
