// The functions of Highway's library that choose among instruction sets, for programs that are linked statically.
#include "engine/kernels/cpu_targets.h"

namespace hwy {

namespace {

std::int64_t enabled = -1;

}  // namespace

std::int64_t SupportedTargets() {
  const std::int64_t targets = thimble::kernels::cpu_targets() & enabled;
  return targets != 0 ? targets : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t disabled) {
  enabled = ~disabled;
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
