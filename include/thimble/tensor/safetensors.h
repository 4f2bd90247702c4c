// The safetensors format (huggingface/safetensors): an 8-byte little-endian header size, a JSON object that
// describes the tensors, then their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "thimble/tensor/shape.h"

namespace thimble {

enum class DType { f32, f64, i64 };

// A tensor to write; the bytes belong to the caller.
struct NamedBytes {
  std::string name;
  DType dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Replaces the file at once (see write_file). Throws FileError.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedBytes> tensors,
                       const std::map<std::string, std::string>& metadata);

class SafetensorsFile {
 public:
  // Throws CheckpointError, naming the file, the tensor and the rule of the format that it breaks.
  explicit SafetensorsFile(const std::filesystem::path& path);

  struct Entry {
    DType dtype;
    Shape shape;
    std::size_t begin, end;  // bytes of the data section
  };
  const std::string& path() const { return path_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Throws CheckpointError when there is no such tensor.
  const Entry& entry(const std::string& name) const;

  // The elements, converted to T (float, double or std::int64_t).
  template <class T>
  std::vector<T> values(const std::string& name) const;

 private:
  std::string path_;
  std::string content_;
  std::size_t data_ = 0;  // where the data section starts
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace thimble
