#include "thimble/engine/hooks.h"

#include "engine/kernels/elementwise.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns a copy of x that the hooks may overwrite, or x if they do not.
Var replaced(Hooks* hooks, Site site, Var x) {
  bool is_replaced = false;
  const Var copy = record(
      "replace", x.shape(), {x},
      [&](Var y) {
        std::copy_n(x.value().data, x.shape().elements(), y.value().data);
        is_replaced = hooks->replace(site, y.shape(), y.value());
      },
      [=](Var y) {
        const ConstMatrixView kept = hooks->kept(site);
        if (kept.data == nullptr)
          x.zeroed_grad_accumulator();
        else
          kernels::mul_backward(x.grad_accumulator(), y.grad(), kept);
      });
  return is_replaced ? copy : x;
}

}  // namespace

Var hook_point(Hooks* hooks, Site site, Var x) {
  if (hooks == nullptr) return x;
  if (hooks->may_replace(site)) x = replaced(hooks, site, x);
  hooks->observe(site, x.shape(), x.value());
  hooks->record(site, x);
  return x;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
