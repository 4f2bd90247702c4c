#include "thimble/autograd/hooks.h"

namespace thimble::inline THIMBLE_PRECISION {

Var site(Hooks* hooks, const std::string& name, Var x) {
  if (hooks == nullptr) return x;
  const Var copy = x.tape().node("replaced", x.shape(), {});
  std::copy_n(x.value().data, x.shape().elements(), copy.value().data);
  if (hooks->replace(name, copy.shape(), copy.value())) x = copy;
  hooks->observe(name, x.shape(), x.value());
  hooks->record(name, x);
  return x;
}

}  // namespace thimble::inline THIMBLE_PRECISION
