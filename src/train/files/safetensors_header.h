// The JSON of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

inline constexpr const char* kMetadataKey = "__metadata__";

// The content of a header, whose sizes and offsets have not been compared with the data.
struct SafetensorsHeader {
  struct Tensor {
    std::string name, dtype;
    std::vector<std::uint64_t> shape;    // at most Shape::kMaxRank
    std::vector<std::uint64_t> offsets;  // two
  };
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Returns the parsed header of `file`. Throws CheckpointError unless the text is UTF-8 and one JSON object of
// tensors and metadata, of at most 10 MB, padded with spaces, without duplicate keys. As in the reference
// implementation, unknown keys of a tensor are skipped and JSON nests at most 127 deep.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file);

}  // namespace thimble
