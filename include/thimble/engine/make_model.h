// Construction of models from configs.
#pragma once

#include <memory>

#include "thimble/engine/model.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns the model that the config describes; its parameters are zero until init(). Throws ShapeError when
// sizes do not match.
std::unique_ptr<Model> make_model(const ModelConfig&, const ModelSizes&, Storage = Storage::values);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
