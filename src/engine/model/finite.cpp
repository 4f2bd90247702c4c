#include "engine/model/finite.h"

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::string describe(const Tape::NonFinite& non_finite, const ModelConfig& config) {
  const std::string_view op = non_finite.op;
  // The columns of attention are heads side by side.
  const std::string head =
      op == "attention" || op == "attend"
          ? fmt::format(", head {}", non_finite.column / config.attention_sizes().d_value)
          : "";
  const char* const kind = op.find('.') == op.npos ? "op" : "parameter";  // a leaf of the tape
  return fmt::format("{} {}, layer {}{}", kind, op, non_finite.layer, head);
}

void require_finite(const Tape& tape, const ModelConfig& config, std::string_view what) {
  const Tape::NonFinite non_finite = tape.first_non_finite_value();
  if (!non_finite) return;
  throw NumericError(fmt::format(
      "{}: the first value that is not finite is in {}; the weights before it are too large, use an earlier checkpoint",
      what, describe(non_finite, config)));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
