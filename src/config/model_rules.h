// Rules about several keys of a model.
#pragma once

#include "thimble/config/report.h"
#include "thimble/model/model_config.h"

namespace thimble::config {

// Reports what does not go together in a model.
void check_model(const ModelConfig& model, Report& report);

}  // namespace thimble::config
