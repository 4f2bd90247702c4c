#include "engine/autograd/held_signs.h"

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

thread_local HeldSigns* held_signs = nullptr;

}  // namespace

HeldSigns::HeldSigns() {
  require<Error>(held_signs == nullptr, "held signs: this thread holds signs already");
  held_signs = this;
}

HeldSigns::~HeldSigns() { held_signs = nullptr; }

void HeldSigns::hold(MatrixView y, ConstMatrixView x) {
  if (held_signs == nullptr) return;
  std::vector<unsigned char>& positive = held_signs->positive_;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const Real* from = x.row(r);
    Real* to = y.row(r);
    for (std::int64_t i = 0; i < x.cols; ++i) {
      const std::size_t at = held_signs->next_++;
      const bool now = from[i] > 0;
      if (at == positive.size())
        positive.push_back(now);
      else if (now != static_cast<bool>(positive[at]))
        to[i] = now ? 0 : from[i];
    }
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
