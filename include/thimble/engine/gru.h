// Gated recurrent units (Cho et al. 2014), as torch.nn.GRU with one layer: its parameters in its order, gates
// reset, update, candidate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// One direction of a GRU: weight_ih (3H, I), weight_hh (3H, H), bias_ih (3H), bias_hh (3H).
struct GruCell {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

  // Adds the parameters NAME.weight_ihSUFFIX and so on.
  GruCell(ParameterStore&, const std::string& name, const std::string& suffix, std::int64_t in,
          std::int64_t hidden);
  // Sets PyTorch's initial values, uniform in +-1 / sqrt(H).
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns the projection (..., 3H) of the input x (..., I) of one step or of all.
  Var gates(Var x) const;
  // Returns the next state (B, H) from gates_x (B, 3H) and h (B, H). A sequence no longer than t keeps its
  // state.
  Var operator()(Var gates_x, Var h, std::span<const std::int32_t> lengths = {}, std::int64_t t = 0) const;
};

// The states of a GRU.
struct GruStates {
  Var all;   // (B, T, D H): after every step; D directions, the forward one first
  Var last;  // (B, D H): after the last step of each direction
};

// A GRU that reads a sequence forward and, if bidirectional, with a second cell backward. From a sequence's
// length on, the forward state stays constant, and the backward state is 0.
struct Gru {
  std::vector<GruCell> cells;  // one for each direction
  std::int64_t hidden;

  Gru(ParameterStore&, const std::string& name, std::int64_t in, std::int64_t hidden, bool bidirectional);
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns the states for x (B, T, I); lengths (B), each 0 .. T, or empty: all T. States start at 0.
  GruStates operator()(Var x, std::span<const std::int32_t> lengths) const;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
