// The elements of a site's array, and where they are in the site's value.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/engine/tensor.h"
#include "thimble/inspect/array_sites.h"
#include "thimble/train/batch.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The dimensions of a site's array for some sequences, of which the last is contiguous: (B, T, H, D), maps (B, H, Tq, Tk).
struct Cells {
  const ArraySite* site;
  std::array<std::int64_t, 4> n;

  Cells(const ArraySite& of, std::int64_t sequences, std::int64_t length, std::int64_t source) : site(&of) {
    const std::int64_t rows = of.of_source ? source : length, keys = of.keys_of_source ? source : length;
    if (site->is_map())
      n = {sequences, of.heads, rows, keys};
    else
      n = {sequences, of.per_sequence ? 1 : rows, std::max<std::int64_t>(of.heads, 1), of.columns};
  }

  std::size_t head_axis() const { return site->is_map() ? 1 : 2; }
  std::size_t position_axis() const { return site->is_map() ? 2 : 1; }
  std::int64_t elements() const { return n[0] * n[1] * n[2] * n[3]; }

  Shape shape(std::int64_t sequences) const {
    if (site->per_sequence) return {sequences, n[3]};
    if (site->heads > 0) return {sequences, n[1], n[2], n[3]};
    return {sequences, n[1], n[3]};
  }

  // Returns how many positions a sequence has, and how many elements of the last dimension.
  std::pair<std::int64_t, std::int64_t> used(const Batch& batch, std::int64_t sequence) const {
    if (site->per_sequence) return {1, n[3]};
    const auto length = [&](bool of_source) -> std::int64_t {
      return (of_source ? batch.source_lengths : batch.lengths)[static_cast<std::size_t>(sequence)];
    };
    return {length(site->of_source), site->is_map() ? length(site->keys_of_source) : n[3]};
  }

  // Calls f(value, array, sequence, head, position) with the n[3] elements of each row of the site's value, of which it
  // has the positions from site.position on, and with their index in the array.
  template <class View, class F>
  void each(Site at, View value, const F& f) const {
    const std::int64_t visited = value.rows / (n[0] * (site->is_map() ? n[1] : 1));
    for (std::int64_t b = 0; b < n[0]; ++b)
      for (std::int64_t i = 0; i < n[1]; ++i)
        for (std::int64_t j = 0; j < n[2]; ++j) {
          const std::int64_t head = site->is_map() ? i : j, position = site->is_map() ? j : i,
                             row = position - at.position;
          if (row < 0 || row >= visited) continue;
          const std::int64_t first = site->is_map() ? 0 : site->first + j * n[3];
          f(value.row((site->is_map() ? b * n[1] + i : b) * visited + row) + first,
            ((b * n[1] + i) * n[2] + j) * n[3], b, head, position);
        }
  }
};

// Overwrites what is beyond the lengths of sequences.
inline void pad(const Cells& cells, const Batch& batch, Real with, std::vector<Real>& values) {
  for (std::int64_t b = 0; b < cells.n[0]; ++b) {
    const auto [rows, columns] = cells.used(batch, b);
    for (std::int64_t i = 0; i < cells.n[1]; ++i)
      for (std::int64_t j = 0; j < cells.n[2]; ++j) {
        Real* row = values.data() + ((b * cells.n[1] + i) * cells.n[2] + j) * cells.n[3];
        std::fill(row + ((cells.site->is_map() ? j : i) < rows ? columns : 0), row + cells.n[3], with);
      }
  }
}

// Leaves only these positions, if any are given, of an array that has positions.
inline void select(Cells& cells, const std::vector<std::int64_t>& positions, std::vector<Real>& values) {
  if (positions.empty() || cells.site->per_sequence) return;
  const std::int64_t all = std::exchange(cells.n[cells.position_axis()], std::ssize(positions)),
                     size = cells.n[3] * (cells.site->is_map() ? 1 : cells.n[2]);
  const std::vector<Real> from = std::exchange(values, {});
  for (auto at = from.begin(); at != from.end(); at += all * size)
    for (const std::int64_t i : positions) {
      require<DataError>(i >= 0 && i < all, "positions: {} of {}; there are 0 to {}", i, cells.site->name,
                         all - 1);
      values.insert(values.end(), at + i * size, at + (i + 1) * size);
    }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
