// The choice between the code for float and that for double.
#pragma once

#include "thimble/train/config.h"

namespace thimble {

// Returns f<float>() or f<double>(), by the precision of the config. What it calls is declared once, as a template, and
// specialized for Real in a source that is compiled for both.
template <class F>
decltype(auto) with_precision(const Config& config, const F& f) {
  return config.train.precision == Precision::float32 ? f.template operator()<float>()
                                                      : f.template operator()<double>();
}

}  // namespace thimble
