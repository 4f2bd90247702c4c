// One callable out of several lambdas, for std::visit.
#pragma once

namespace thimble::config {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;  // clang 14 does not deduce it

}  // namespace thimble::config
