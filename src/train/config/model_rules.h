// Rules about several keys of a model.
#pragma once

#include "thimble/engine/model_config.h"
#include "train/config/report.h"

namespace thimble::config {

// Reports the rules that the values of a model break together.
void check_model(const ModelConfig& model, Report& report);

}  // namespace thimble::config
