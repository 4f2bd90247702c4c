#include "thimble/engine/gru.h"

#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

GruCell::GruCell(ParameterStore& store, const std::string& name, const std::string& suffix, std::int64_t in,
                 std::int64_t hidden)
    : weight_ih(store.add(name + ".weight_ih" + suffix, {3 * hidden, in})),
      weight_hh(store.add(name + ".weight_hh" + suffix, {3 * hidden, hidden})),
      bias_ih(store.add(name + ".bias_ih" + suffix, {3 * hidden})),
      bias_hh(store.add(name + ".bias_hh" + suffix, {3 * hidden})) {}

void GruCell::init(ParameterStore& store, std::uint64_t seed) const {
  const double bound = 1 / std::sqrt(static_cast<double>(store.entry(weight_hh).shape[1]));
  for (const Parameter p : {weight_ih, weight_hh, bias_ih, bias_hh}) init_uniform(store, p, seed, bound);
}

Var GruCell::gates(Var x) const {
  return linear(x, x.tape().parameter(weight_ih), x.tape().parameter(bias_ih));
}

Var GruCell::operator()(Var gates_x, Var h, std::span<const std::int32_t> lengths, std::int64_t t) const {
  Tape& tape = h.tape();
  const Var gates_h = linear(h, tape.parameter(weight_hh), tape.parameter(bias_hh));
  return gru_cell(gates_x, gates_h, h, lengths, t);
}

namespace {

GruStates run(const GruCell& cell, Var x, std::int64_t hidden, std::span<const std::int32_t> lengths,
              bool reverse) {
  Tape& tape = x.tape();
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  const Var gates = cell.gates(x);
  Var h = tape.zeros({batch, hidden});
  const std::span<Var> states = tape.allocate<Var>(static_cast<std::size_t>(time));
  for (std::int64_t i = 0; i < time; ++i) {
    const std::int64_t t = reverse ? time - 1 - i : i;
    h = cell(step(gates, t), h, lengths, t);
    states[static_cast<std::size_t>(t)] = h;
  }
  return {stack(states), h};
}

}  // namespace

Gru::Gru(ParameterStore& store, const std::string& name, std::int64_t in, std::int64_t hidden_size,
         bool bidirectional)
    : hidden(hidden_size) {
  cells.emplace_back(store, name, "_l0", in, hidden);
  if (bidirectional) cells.emplace_back(store, name, "_l0_reverse", in, hidden);
}

void Gru::init(ParameterStore& store, std::uint64_t seed) const {
  for (const GruCell& cell : cells) cell.init(store, seed);
}

GruStates Gru::operator()(Var x, std::span<const std::int32_t> lengths) const {
  require<ShapeError>(x.shape().rank() == 3 && x.shape()[1] > 0,
                      "gru: x {} must be (batch, time, channels), with at least one step", x.shape());
  const bool inside = std::ranges::all_of(lengths, [&](auto n) { return n >= 0 && n <= x.shape()[1]; });
  require<ShapeError>(inside, "gru: every length must be 0 .. {}", x.shape()[1]);
  const GruStates forward = run(cells[0], x, hidden, lengths, false);
  if (cells.size() == 1) return forward;
  const GruStates backward = run(cells[1], x, hidden, lengths, true);
  return {concat(forward.all, backward.all), concat(forward.last, backward.last)};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
