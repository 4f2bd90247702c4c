#include "thimble/inspect/watch.h"

#include "inspect/require_heads.h"

namespace thimble {

namespace f32 {
HeadWatch make_head_watch(const Config& config);
}
namespace f64 {
HeadWatch make_head_watch(const Config& config);
}

HeadWatch head_watch(const Config& config) {
  require_heads(config.model);
  const bool single = config.train.precision == Precision::float32;
  return single ? f32::make_head_watch(config) : f64::make_head_watch(config);
}

}  // namespace thimble
