#include "train/step/forward.h"

namespace thimble {

DataRecord record_of(const Config& config) {
  return record_of(config.task, layout_of(config.model), config.model.max_length);
}

}  // namespace thimble
