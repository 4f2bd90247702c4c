// Errors for numbers that are not finite.
#pragma once

#include <string>
#include <string_view>

#include "thimble/engine/model_config.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns "op attention, layer encoder.layers.0, head 1"; ops other than attention have no head, and a parameter is
// named as one.
std::string describe(const Tape::NonFinite&, const ModelConfig&);

// Throws NumericError, which starts with `what`, when a value on the tape is not finite.
void require_finite(const Tape&, const ModelConfig&, std::string_view what);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
