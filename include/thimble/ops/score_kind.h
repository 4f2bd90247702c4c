// How a query scores a key.
#pragma once

namespace thimble {

enum class Score {
  scaled_dot,  // q k / sqrt(Dk), Vaswani et al. 2017
  dot,         // q k, Luong et al. 2015
};

}  // namespace thimble
