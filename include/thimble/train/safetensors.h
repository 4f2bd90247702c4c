// The safetensors format (huggingface/safetensors): an 8-byte little-endian header size, a JSON object that
// describes the tensors, then their bytes.
//
// Files of thimble have two more keys at the start of the metadata: "checksum", 16 hex digits, the
// XXH3-64 of the whole file with these digits taken as '0', and "checksum_algorithm", "XXH3-64". A file with
// either key is verified, so that damage to one of them is detected too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/shape.h"
#include "thimble/train/file.h"

namespace thimble {

struct SafetensorsHeader;

// The element types of the format; those of 4 and 6 bits are packed.
enum class DType {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

// A tensor to write; the bytes belong to the caller.
struct NamedBytes {
  std::string name;
  DType dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Writes the tensors atomically, as write_file() does. Throws FileError when the file cannot be written, and
// CheckpointError, before anything is written, for a duplicate name, a name that is not UTF-8 or that the
// format or the checksum reserves, and for bytes that do not match the shape.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedBytes> tensors,
                       const std::map<std::string, std::string>& metadata);

// Returns what a file of these tensors without a checksum begins with; their bytes follow. Throws as write_safetensors.
std::string safetensors_header(std::span<const NamedBytes> tensors,
                               const std::map<std::string, std::string>& metadata);

// Returns the metadata in the header of a file, which messages call `name`, with a checksum that is not compared. Throws
// CheckpointError when the header is damaged, and FileError when it cannot be read.
std::map<std::string, std::string> read_safetensors_metadata(const InputFile& file, const std::string& name);

// A safetensors file, whose tensors are read when they are asked for. A copy shares the open file.
class SafetensorsFile {
 public:
  // Opens the file and checks all of it, in pieces. Throws CheckpointError, naming the file, the tensor and the rule of the format that it
  // breaks, or that the checksum does not match. Tensors of more than Shape::kMaxRank dimensions and headers
  // of more than 10 MB (some 150,000 tensors) are not supported. Takes n log n time for n tensors.
  explicit SafetensorsFile(const std::filesystem::path& path);

  // Does the same for a file that is open, which messages call `name`. Throws FileError when it cannot be read.
  SafetensorsFile(std::shared_ptr<const InputFile> file, std::string name);

  // Parse the bytes of a file, which messages call `name`; the second, whose header was parsed to know how many there are.
  SafetensorsFile(std::string content, std::string name);
  SafetensorsFile(const SafetensorsHeader& header, std::string content, std::string name);

  struct Entry {
    DType dtype;
    Shape shape;
    std::size_t begin, end;  // bytes of the data section
  };
  const std::string& path() const { return name_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // without the checksum

  // Returns the entry of a tensor. Throws CheckpointError when there is no such tensor.
  const Entry& entry(const std::string& name) const;

  // Returns the elements of a tensor, converted to T. Throws CheckpointError when there is no such tensor,
  // and when its type is not one of I64, F64, F32, F16 and BF16 (T float or double), not I64 or I32 (T
  // std::int64_t or std::int32_t), or not BOOL (T std::uint8_t).
  template <class T>
  std::vector<T> values(const std::string& name) const;

  // Throws CheckpointError if the file was written to since it was opened, so that values() may be of another.
  void require_unchanged() const;

 private:
  std::string bytes(std::uint64_t offset, std::uint64_t count) const;
  void parse();
  void set_header(const SafetensorsHeader& header, std::uint64_t header_size);
  void check_layout() const;
  void check_checksum();

  std::string name_;
  std::shared_ptr<const InputFile> file_;  // null: all of it is content_
  std::string content_;
  std::uint64_t size_;
  std::size_t data_ = 0;  // where the data section starts
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace thimble
