// The convention of rotary positions.
#pragma once

namespace thimble {

// Which columns of a head of D columns are a pair: 2i and 2i+1 (Su et al. 2021), or i and i + D/2 (GPT-NeoX,
// and Hugging Face's LLaMA).
enum class RotaryPairs { pairs, halves };

// The convention of rotary positions: pair i at position p is rotated by the angle p base^(-2i / D).
struct RotaryConfig {
  RotaryPairs layout = RotaryPairs::pairs;
  double base = 10000;
};

}  // namespace thimble
