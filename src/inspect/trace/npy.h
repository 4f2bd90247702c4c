// Attention as NumPy arrays (format 1.0,
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/train/dataset.h"
#include "thimble/train/file.h"

namespace thimble {

struct ModelSource;

// A file with an array, written piece by piece in C order, little-endian; it appears only with commit(). All
// functions throw FileError.
class NpyFile {
 public:
  enum class Type { float32, int32 };

  NpyFile(const std::filesystem::path& path, Type type, std::span<const std::int64_t> shape);

  // Append the next elements. Throw ShapeError when they have another type or exceed the shape.
  void append(std::span<const float> elements);
  void append(std::span<const std::int32_t> elements);
  // Throws ShapeError when elements are missing.
  void commit();

 private:
  void append(Type type, std::span<const std::byte> bytes);

  NewFile file_;
  Type type_;
  std::int64_t missing_;  // elements
};

// Writes the attention of a model on the first `count` sequences of a split, or on all N if there are fewer,
// into a directory, which is created if needed:
//   attention.npy (N, L, H, T, T) float32  weight of a query on a key, NaN where either is padding
//   tokens.npy    (N, T)          int32    token ids, -1 for padding
//   lengths.npy   (N)             int32    length of each sequence
// and for an encoder-decoder, in place of attention.npy,
//   encoder.npy   (N, L, H, S, S), decoder.npy (N, L, H, T, T), cross.npy (N, L, H, T, S)
//   sources.npy   (N, S), source_lengths.npy (N)    as tokens.npy and lengths.npy, for the encoder input
// Keeps one sequence at a time in memory. Each file is written atomically. Throws FileError when one cannot
// be written, otherwise as trace_split does.
void write_attention(const ModelSource& model, Split split, std::int64_t count,
                     const std::filesystem::path& directory);

// Throws FileError if write_attention could not write to the directory; leaves nothing behind.
void require_writable_attention(const std::filesystem::path& directory);

}  // namespace thimble
