// Jobs of inspect.h in the precision R, float or double.
#pragma once

#include "thimble/inspect/inspect.h"

namespace thimble {

template <class R>
InspectReport run_inspection(const ModelSource& model, const InspectOptions& options);
template <class R>
AblationReport run_ablation(const ModelSource& model, std::span<const HeadId> heads, std::int64_t sequences);

}  // namespace thimble
