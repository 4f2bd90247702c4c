// The JSON of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

inline constexpr const char* kMetadataKey = "__metadata__";

// What the header says; whether sizes and offsets suit the data is not checked yet.
struct SafetensorsHeader {
  struct Tensor {
    std::string name, dtype;
    std::vector<std::uint64_t> shape;    // at most Shape::kMaxRank
    std::vector<std::uint64_t> offsets;  // two
  };
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// `file` stands in messages. Throws CheckpointError unless the text is UTF-8 and one JSON object of tensors
// and metadata, of at most 10 MB, padded with spaces, in which no key is duplicate. Unknown keys of a tensor
// are skipped, as the reference implementation does, and like there JSON nests at most 127 deep.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file);

}  // namespace thimble
