#include "inspect/timeline/head_log.h"

#include "inspect/scores/require_heads.h"
#include "thimble/engine/real.h"

namespace thimble {

inline namespace f32 {
HeadLog make_head_log(const Config& config);
}
namespace f64 {
HeadLog make_head_log(const Config& config);
}

HeadLog head_log(const Config& config) {
  require_heads(config.model);
  const bool single = config.train.precision == Precision::float32;
  return single ? f32::make_head_log(config) : f64::make_head_log(config);
}

}  // namespace thimble
