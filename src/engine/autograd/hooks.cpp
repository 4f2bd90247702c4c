#include "thimble/engine/hooks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Var hook_point(Hooks* hooks, Site site, Var x) {
  if (hooks == nullptr) return x;
  if (hooks->may_replace(site)) {
    const Var copy = x.tape().zeros(x.shape());
    if (x.tape().mode() != Tape::Mode::plan)
      std::copy_n(x.value().data, x.shape().elements(), copy.value().data);
    if (hooks->replace(site, copy.shape(), copy.value())) x = copy;
  }
  hooks->observe(site, x.shape(), x.value());
  hooks->record(site, x);
  return x;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
