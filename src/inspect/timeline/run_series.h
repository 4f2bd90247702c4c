// A job of checkpoint_series.h in the precision R, float or double.
#pragma once

#include <map>

#include "thimble/inspect/checkpoint_series.h"
#include "thimble/train/safetensors.h"

namespace thimble {

template <class R>
std::vector<SeriesStep> run_series(
    const ModelSource& model,
    const std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>>& checkpoints, std::int64_t examples);

}  // namespace thimble
