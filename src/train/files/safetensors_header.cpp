#include "train/files/safetensors_header.h"

#include "thimble/engine/error.h"
#include "thimble/engine/shape.h"
#include "thimble/train/json.h"
#include "train/files/text/text.h"

namespace thimble {
namespace {

bool are_sizes(const SortedJson& list) {
  return std::ranges::all_of(list, [](const SortedJson& size) { return size.is_number_unsigned(); });
}

SafetensorsHeader::Tensor read_tensor(const std::string& file, const std::string& name,
                                      const SortedJson& json) {
  const std::string where = fmt::format("{}: tensor {}", file, printable(name));
  require<CheckpointError>(json.is_object(), "{}: must be an object of dtype, shape and data_offsets", where);
  for (const char* key : {"dtype", "shape", "data_offsets"})
    require<CheckpointError>(json.contains(key), "{}: {} is missing", where, key);
  const SortedJson &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  require<CheckpointError>(dtype.is_string(), "{}: dtype must be a text", where);
  require<CheckpointError>(shape.is_array() && shape.size() <= Shape::kMaxRank,
                           "{}: the shape must be a list of at most {} sizes", where, Shape::kMaxRank);
  require<CheckpointError>(are_sizes(shape), "{}: a size in the shape is not a whole number", where);
  require<CheckpointError>(offsets.is_array() && offsets.size() == 2 && are_sizes(offsets),
                           "{}: data_offsets must be two whole numbers", where);
  return {name, dtype, shape, offsets};
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file) {
  constexpr std::size_t kMaxBytes = 10'000'000;
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  require<CheckpointError>(text.starts_with('{') && text.ends_with('}'),
                           "{}: the header is not a JSON object, from {{ to }} and then only spaces", file);
  require<CheckpointError>(text.size() <= kMaxBytes,
                           "{}: the header has {} bytes; {} is the most that is read", file, text.size(),
                           kMaxBytes);
  const std::size_t valid = utf8_size(text);
  require<CheckpointError>(valid == text.size(), "{}: the header is not UTF-8 at its byte {}", file,
                           valid + 1);
  SafetensorsHeader header;
  try {
    const SortedJson json = parse_untrusted_json(text);
    for (const auto& [name, value] : json.items()) {
      if (name != kMetadataKey) {
        header.tensors.push_back(read_tensor(file, name, value));
        continue;
      }
      const auto is_text = [](const SortedJson& v) { return v.is_string(); };
      require<CheckpointError>(value.is_object() && std::ranges::all_of(value, is_text),
                               "{}: {} in the header must be an object of texts", file, kMetadataKey);
      header.metadata = value;
    }
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: the header: {}", file, e.what()));
  }
  return header;
}

}  // namespace thimble
