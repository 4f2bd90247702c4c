#include "tensor/safetensors_header.h"

#include <set>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/text.h"
#include "thimble/tensor/shape.h"

namespace thimble {

namespace {

constexpr std::size_t kDeepest = 127;

// Told of the values of the header one after the other, so that nothing is built that nobody needs.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  SafetensorsHeader& header() { return header_; }

  bool null() override { return value(Kind::other); }
  bool boolean(bool) override { return value(Kind::other); }
  bool number_integer(std::int64_t) override { return value(Kind::other); }
  bool number_unsigned(std::uint64_t number) override { return value(Kind::size, {}, number); }
  bool number_float(double, const std::string&) override { return value(Kind::other); }
  bool string(std::string& text) override { return value(Kind::text, text); }
  bool binary(Json::binary_t&) override { return value(Kind::other); }
  bool start_array(std::size_t) override { return open(Kind::array); }
  bool start_object(std::size_t) override { return open(Kind::object); }
  bool end_array() override {
    keys_.pop_back();
    return true;
  }

  bool key(std::string& key) override {
    require<CheckpointError>(keys_.back().insert(key).second, "{}: key {} stands twice in the header", file_,
                             printable(key));
    if (keys_.size() == 1) {
      tensor_ = key != kMetadataKey;
      if (tensor_) header_.tensors.push_back({key, {}, {}, {}});
    } else if (keys_.size() == 2) {
      field_ = key;
    }
    return true;
  }

  bool end_object() override {
    if (keys_.size() == 2 && tensor_) {
      for (const char* field : {"dtype", "shape", "data_offsets"})
        require<CheckpointError>(keys_.back().contains(field), "{}: {} is missing", where(), field);
      require<CheckpointError>(header_.tensors.back().offsets.size() == 2, "{}: {}", where(), kOffsets);
    }
    keys_.pop_back();
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const Json::exception&) override {
    throw CheckpointError(fmt::format("{}: the header is not valid JSON at its byte {}", file_, byte));
  }

 private:
  enum class Kind { size, text, array, object, other };

  static constexpr const char* kOffsets = "data_offsets must be two whole numbers";

  std::string where() const {
    return fmt::format("{}: tensor {}", file_, printable(header_.tensors.back().name));
  }

  bool open(Kind kind) {
    value(kind);
    require<CheckpointError>(keys_.size() < kDeepest,
                             "{}: the header is not a safetensors header: it nests "
                             "more than {} deep",
                             file_, kDeepest);
    keys_.emplace_back();
    return true;
  }

  // A value at the place where the reader stands.
  bool value(Kind kind, const std::string& text = {}, std::uint64_t number = 0) {
    if (keys_.empty()) return true;
    if (!tensor_)
      metadata(kind, text);
    else if (keys_.size() == 1)
      require<CheckpointError>(kind == Kind::object, "{}: must be an object of dtype, shape and data_offsets",
                               where());
    else
      tensor_value(kind, text, number);
    return true;
  }

  void metadata(Kind kind, const std::string& text) {
    require<CheckpointError>(kind == (keys_.size() == 1 ? Kind::object : Kind::text),
                             "{}: the header is not a safetensors header: {} must be an object of texts",
                             file_, kMetadataKey);
    if (kind == Kind::text) header_.metadata[field_] = text;
  }

  void tensor_value(Kind kind, const std::string& text, std::uint64_t number) {
    SafetensorsHeader::Tensor& tensor = header_.tensors.back();
    const bool is_list = keys_.size() == 2;
    if (field_ == "dtype") {
      require<CheckpointError>(kind == Kind::text, "{}: dtype must be a text", where());
      tensor.dtype = text;
    } else if (field_ == "shape") {
      require<CheckpointError>(is_list ? kind == Kind::array : tensor.shape.size() < Shape::kMaxRank,
                               "{}: the shape must be a list of at most {} sizes", where(), Shape::kMaxRank);
      require<CheckpointError>(is_list || kind == Kind::size, "{}: a size in the shape is not a whole number",
                               where());
      if (!is_list) tensor.shape.push_back(number);
    } else if (field_ == "data_offsets") {
      require<CheckpointError>(
          is_list ? kind == Kind::array : kind == Kind::size && tensor.offsets.size() < 2, "{}: {}", where(),
          kOffsets);
      if (!is_list) tensor.offsets.push_back(number);
    }
  }

  const std::string& file_;
  SafetensorsHeader header_;
  std::vector<std::set<std::string>> keys_;  // of each object that is open; none for an array
  bool tensor_ = false;                      // whether the reader stands in a tensor, not in the metadata
  std::string field_;                        // and in which key of it
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file) {
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  require<CheckpointError>(text.starts_with('{') && text.ends_with('}'),
                           "{}: the header is not a JSON object, from {{ to }} and then only spaces", file);
  const std::size_t valid = utf8_size(text);
  require<CheckpointError>(valid == text.size(), "{}: the header is not UTF-8 at its byte {}", file,
                           valid + 1);
  // To the JSON parser a NUL is the end of the text.
  const std::size_t nul = text.find('\0');
  require<CheckpointError>(nul == text.npos, "{}: the header is not valid JSON at its byte {}", file,
                           nul + 1);
  HeaderReader reader(file);
  read_json(text, reader);
  return std::move(reader.header());
}

}  // namespace thimble
