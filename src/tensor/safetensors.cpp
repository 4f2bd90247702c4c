#include "thimble/tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "thimble/core/error.h"
#include "thimble/core/file.h"

namespace thimble {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestHeader = 100'000'000;

struct DTypeInfo {
  DType dtype;
  const char* name;
  std::size_t size;
};
constexpr DTypeInfo kDTypes[] = {{DType::f32, "F32", 4}, {DType::f64, "F64", 8}, {DType::i64, "I64", 8}};

const DTypeInfo& info(DType dtype) { return *std::ranges::find(kDTypes, dtype, &DTypeInfo::dtype); }

template <class Stored, class T>
std::vector<T> convert(const char* from, std::size_t bytes) {
  std::vector<T> values(bytes / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<T>(stored);
  }
  return values;
}

// One entry of the header; throws CheckpointError or a JSON exception.
SafetensorsFile::Entry parse_entry(const std::string& where, const Json& json, std::size_t data_size) {
  const auto dtype_name = json.at("dtype").get<std::string>();
  const auto* dtype = std::ranges::find_if(kDTypes, [&](const DTypeInfo& d) { return d.name == dtype_name; });
  require<CheckpointError>(dtype != std::end(kDTypes), "{}: dtype {} is not one of F32, F64, I64", where,
                           dtype_name);
  const Json& sizes = json.at("shape");
  require<CheckpointError>(sizes.is_array() && sizes.size() <= Shape::kMaxRank,
                           "{}: the shape must be a list of at most {} sizes", where, Shape::kMaxRank);
  Shape shape;
  std::size_t bytes = dtype->size;
  for (const Json& size : sizes) {
    require<CheckpointError>(size.is_number_unsigned(), "{}: a size in the shape is not a whole number",
                             where);
    const auto n = size.get<std::uint64_t>();
    require<CheckpointError>(n == 0 || (n <= INT64_MAX && bytes <= data_size / n),
                             "{}: the shape needs more bytes than the file has", where);
    bytes *= n;
    shape = shape.appended(static_cast<std::int64_t>(n));
  }
  const Json& offsets = json.at("data_offsets");
  require<CheckpointError>(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                               offsets[1].is_number_unsigned(),
                           "{}: data_offsets must be two whole numbers", where);
  const auto begin = offsets[0].get<std::size_t>(), end = offsets[1].get<std::size_t>();
  require<CheckpointError>(begin <= end && end <= data_size,
                           "{}: data_offsets [{}, {}] leave the data of {} bytes", where, begin, end,
                           data_size);
  require<CheckpointError>(end - begin == bytes, "{}: {} bytes of data for a shape that needs {}", where,
                           end - begin, bytes);
  return {dtype->dtype, shape, begin, end};
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header;
  header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const NamedBytes& tensor : tensors) {
    std::vector<std::int64_t> sizes;
    for (int d = 0; d < tensor.shape.rank(); ++d) sizes.push_back(tensor.shape[d]);
    const std::size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", info(tensor.dtype).name}, {"shape", sizes}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::string content(sizeof size, '\0');
  std::memcpy(content.data(), &size, sizeof size);
  content += text;
  for (const NamedBytes& tensor : tensors) {
    content.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  write_file(path, content);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path.string()) {
  try {
    content_ = read_file(path);
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  std::uint64_t header_size = 0;
  require<CheckpointError>(content_.size() >= sizeof header_size,
                           "{}: {} bytes are too few for a safetensors file", path_, content_.size());
  std::memcpy(&header_size, content_.data(), sizeof header_size);
  require<CheckpointError>(
      header_size <= kLargestHeader && header_size <= content_.size() - sizeof header_size,
      "{}: the header size {} is more than the file holds; it is truncated or no safetensors file", path_,
      header_size);
  data_ = sizeof header_size + header_size;
  try {
    const Json header = Json::parse(content_.begin() + sizeof header_size,
                                    content_.begin() + static_cast<std::ptrdiff_t>(data_));
    require<CheckpointError>(header.is_object(), "{}: the header is not a JSON object", path_);
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = value.get<std::map<std::string, std::string>>();
      } else {
        entries_[name] = parse_entry(path_ + ": tensor " + name, value, content_.size() - data_);
      }
    }
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: the header is not valid: {}", path_, e.what()));
  }
  std::vector<Entry> order;
  for (const auto& [name, entry] : entries_) order.push_back(entry);
  std::ranges::sort(order, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  std::size_t at = 0;
  for (const Entry& entry : order) {
    require<CheckpointError>(entry.begin == at,
                             "{}: the tensors leave a hole or overlap at byte {} of the data", path_, at);
    at = entry.end;
  }
  require<CheckpointError>(at == content_.size() - data_, "{}: {} bytes of data follow the last tensor",
                           path_, content_.size() - data_ - at);
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  require<CheckpointError>(found != entries_.end(), "{}: there is no tensor {}", path_, name);
  return found->second;
}

template <class T>
std::vector<T> SafetensorsFile::values(const std::string& name) const {
  const Entry& e = entry(name);
  const char* from = content_.data() + data_ + e.begin;
  switch (e.dtype) {
    case DType::f32:
      return convert<float, T>(from, e.end - e.begin);
    case DType::f64:
      return convert<double, T>(from, e.end - e.begin);
    case DType::i64:
      return convert<std::int64_t, T>(from, e.end - e.begin);
  }
  throw CheckpointError("safetensors: unknown dtype");
}

template std::vector<float> SafetensorsFile::values<float>(const std::string&) const;
template std::vector<double> SafetensorsFile::values<double>(const std::string&) const;
template std::vector<std::int64_t> SafetensorsFile::values<std::int64_t>(const std::string&) const;

}  // namespace thimble
