#include "thimble/model/finite.h"

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

std::string describe(const Tape::Culprit& culprit, const ModelConfig& config) {
  const std::string_view op = culprit.op;
  // Its columns are those of one head after the other.
  const std::string head = op == "attention" || op == "attend"
                               ? fmt::format(", head {}", culprit.column / config.attention_sizes().d_value)
                               : "";
  return fmt::format("op {}, layer {}{}", op, culprit.layer, head);
}

void require_finite(const Tape& tape, const ModelConfig& config, std::string_view what) {
  const Tape::Culprit culprit = tape.first_bad_value();
  if (!culprit) return;
  throw NumericError(
      fmt::format("{}: the first value that is not finite is in {}; the weights before it are too large, use "
                  "an earlier checkpoint",
                  what, describe(culprit, config)));
}

}  // namespace thimble::inline THIMBLE_PRECISION
