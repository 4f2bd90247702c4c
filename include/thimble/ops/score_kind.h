// How a query scores a key.
#pragma once

namespace thimble {

enum class Score {
  scaled_dot,  // q^T k / sqrt(Dk), Vaswani et al. 2017
  dot,         // q^T k, Luong et al. 2015
  general,     // q^T W k, the same
  additive,    // w^T tanh(q + k), Bahdanau et al. 2015
  none,        // nothing: no attention at all
};

}  // namespace thimble
