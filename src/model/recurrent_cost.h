// What a recurrent model costs; the functions of cost.h hand on to these.
#pragma once

#include "thimble/model/cost.h"

namespace thimble {

double recurrent_parameters(const ModelConfig&, const ModelSizes&);
Flops recurrent_flops(const ModelConfig&, const ModelSizes&, std::int64_t sequences);
double recurrent_activations(const ModelConfig&, const ModelSizes&, std::int64_t sequences, bool training);
double recurrent_decoding(const ModelConfig&, const ModelSizes&, std::int64_t sequences);

}  // namespace thimble
