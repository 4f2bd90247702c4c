// Gated recurrent units (Cho et al. 2014), as torch.nn.GRU with one layer: its parameters in its order, gates
// reset, update, candidate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/ops/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// One direction: weight_ih (3H, I), weight_hh (3H, H), bias_ih (3H), bias_hh (3H).
struct GruCell {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  // The parameters are NAME.weight_ihSUFFIX and so on.
  GruCell(ParameterStore&, const std::string& name, const std::string& suffix, std::int64_t in,
          std::int64_t hidden);
  // Uniform in +-1 / sqrt(H): PyTorch's default.
  void init(ParameterStore&, std::uint64_t seed) const;
  // What the input has to say, of one step or of all: x (..., I), (..., 3H).
  Var gates(Var x) const;
  // The state after gates_x (B, 3H) and h (B, H): (B, H). A sequence no longer than t keeps its state.
  Var operator()(Var gates_x, Var h, std::span<const std::int32_t> lengths = {}, std::int64_t t = 0) const;
};

struct GruStates {
  Var all;   // (B, T, D H): after every step; D directions, the forward one first
  Var last;  // (B, D H): after the last step of each direction
};

// A sequence is read from its first step to its last one and, if bidirectional, by a second cell from its
// last step to its first. From a sequence's length on, the forward state stays what it was, and the backward
// one is 0 until it enters the sequence.
struct Gru {
  std::vector<GruCell> cells;  // one for each direction
  std::int64_t hidden;

  Gru(ParameterStore&, const std::string& name, std::int64_t in, std::int64_t hidden, bool bidirectional);
  void init(ParameterStore&, std::uint64_t seed) const;
  // x (B, T, I); lengths (B), each 0 .. T, or empty: all T. States start at 0.
  GruStates operator()(Var x, std::span<const std::int32_t> lengths) const;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
