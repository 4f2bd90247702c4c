// Named points of a forward pass where it can be watched or changed. Capture, ablation and patching are made
// of these two calls on the very forward pass that trains; a pass without hooks pays nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "thimble/autograd/tape.h"

namespace thimble::inline THIMBLE_PRECISION {

class Hooks {
 public:
  virtual ~Hooks() = default;

  // May overwrite the value of a site, in place, and says whether it did. A replaced value is a constant: no
  // gradient flows back through it.
  virtual bool replace(std::string_view /*site*/, const Shape&, MatrixView /*value*/) { return false; }

  // The value that the rest of the pass uses.
  virtual void observe(std::string_view /*site*/, const Shape&, ConstMatrixView /*value*/) {}

  // The same value on the tape, whose gradient can be read after backward(). Not for attention weights, which
  // are part of a larger op.
  virtual void record(std::string_view /*site*/, Var) {}
};

// x as the rest of the pass is to use it: x itself, or a constant in its place.
Var site(Hooks* hooks, const std::string& name, Var x);

// Where a pass goes from position to position, a site has a name for each: "name.3" is position 3 of "name".
// 0 for the name itself, whose value starts at the first position; nothing for other sites.
std::optional<std::int64_t> position_of(std::string_view site, std::string_view name);

}  // namespace thimble::inline THIMBLE_PRECISION
