// The weights of a session at earlier steps.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Weights at some steps of training, as many as fit in kBytes: the first, the last, and steps in between that
// are spread evenly in the logarithm of step + 1.
class History {
 public:
  void keep(std::int64_t step, std::span<const Real> weights);
  // Throws ConfigError, with the steps that there are, when there are none of that step.
  std::span<const Real> at(std::int64_t step) const;
  std::size_t bytes() const;
  const std::map<std::int64_t, std::vector<Real>>& steps() const { return steps_; }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;

  // Removes the step in between whose neighbors are closest to each other.
  void drop();

  std::map<std::int64_t, std::vector<Real>> steps_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
