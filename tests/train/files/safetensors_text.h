// Safetensors files made by hand, for tests.
#pragma once

#include <fmt/ranges.h>

#include <cstring>
#include <string>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/train/safetensors.h"

namespace thimble::tests {

// Returns the text of a file with this header and this much data.
inline std::string file_text(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + header + std::string(data_bytes, '\1');
}

inline std::string complaint(const std::string& content) {
  try {
    SafetensorsFile file(content, "FILE");
  } catch (const CheckpointError& e) {
    const std::string message = e.what();
    return message.starts_with("FILE: ") ? message.substr(6) : "the file is not named: " + message;
  }
  return "accepted";
}

inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

inline std::string object(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

// Return the error for a file of one tensor `w`, and of two tensors.
inline std::string complaint(const std::string& dtype, const std::string& shape, const std::string& offsets,
                             std::size_t bytes) {
  return complaint(file_text(object({entry("w", dtype, shape, offsets)}), bytes));
}
inline std::string pair_complaint(const std::string& first, const std::string& second, std::size_t bytes) {
  return complaint(
      file_text(object({entry("a", "F32", "[2]", first), entry("b", "F32", "[2]", second)}), bytes));
}

}  // namespace thimble::tests
