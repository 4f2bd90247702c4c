// One callable out of several lambdas, for std::visit.
#pragma once

namespace thimble::config {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace thimble::config
