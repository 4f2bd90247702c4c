#include "thimble/train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/files/hash.h"
#include "train/files/safetensors_header.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;

struct DTypeInfo {
  const char* name;
  std::uint64_t bits;
};
constexpr DTypeInfo kDTypes[] = {  // in the order of DType
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
static_assert(std::size(kDTypes) == static_cast<std::size_t>(DType::u64) + 1);

const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

constexpr const char* kChecksumKey = "checksum";
constexpr const char* kAlgorithmKey = "checksum_algorithm";
constexpr const char* kAlgorithm = "XXH3-64";
constexpr std::string_view kBeforeDigits = R"({"__metadata__":{"checksum":")";  // where the header starts
constexpr std::size_t kDigits = sizeof(std::uint64_t) + kBeforeDigits.size(), kDigitCount = 16;

// A number in IEEE 754 binary16.
struct Half {
  std::uint16_t bits;
  operator float() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31  ? (fraction != 0 ? std::nanf("") : INFINITY)
                       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
  }
};
// A number in bfloat16, the upper half of a binary32.
struct Bfloat {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

template <class Stored, class T>
std::vector<T> convert(std::string_view data) {
  std::vector<T> values(data.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<T>(stored);
  }
  return values;
}

SafetensorsFile::Entry checked_entry(const std::string& file, const SafetensorsHeader::Tensor& tensor,
                                     std::size_t data_size) {
  const std::string where = fmt::format("{}: tensor {}", file, printable(tensor.name));
  const auto* dtype = std::ranges::find(kDTypes, tensor.dtype, &DTypeInfo::name);
  require<CheckpointError>(dtype != std::end(kDTypes), "{}: dtype {} is not one of the format's", where,
                           printable(tensor.dtype));
  constexpr std::uint64_t kMaxElements = INT64_MAX / 64;
  Shape shape;
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) {
    require<CheckpointError>(size == 0 || (size <= kMaxElements && elements <= kMaxElements / size),
                             "{}: the shape has more elements than any file", where);
    elements *= size;
    shape = shape.appended(static_cast<std::int64_t>(size));
  }
  const std::uint64_t bits = elements * dtype->bits, begin = tensor.offsets[0], end = tensor.offsets[1];
  require<CheckpointError>(bits % 8 == 0, "{}: {} elements of {} bits do not fill whole bytes", where,
                           elements, dtype->bits);
  require<CheckpointError>(begin <= end && end <= data_size,
                           "{}: data_offsets [{}, {}] leave the data of {} bytes", where, begin, end,
                           data_size);
  require<CheckpointError>(end - begin == bits / 8, "{}: {} bytes of data for a shape that needs {}", where,
                           end - begin, bits / 8);
  return {static_cast<DType>(dtype - kDTypes), shape, static_cast<std::size_t>(begin),
          static_cast<std::size_t>(end)};
}

void check_text(const std::filesystem::path& path, const std::string& text) {
  if (utf8_size(text) != text.size())
    throw CheckpointError(
        fmt::format("{}: {} is not UTF-8 and cannot be written", path.string(), printable(text)));
}

// Returns the header with its size, with a checksum of zeros if it has one.
std::string describe(const std::filesystem::path& path, std::span<const NamedBytes> tensors,
                     const std::map<std::string, std::string>& metadata, bool has_checksum) {
  Json header = Json::object();  // null would crash where there is no memory to turn it into an object
  auto& texts = header[kMetadataKey] = Json::object();
  if (has_checksum) texts = {{kChecksumKey, std::string(kDigitCount, '0')}, {kAlgorithmKey, kAlgorithm}};
  for (const auto& [key, text] : metadata) {
    check_text(path, key);
    check_text(path, text);
    require<CheckpointError>(!texts.contains(key), "{}: metadata {} is reserved for the checksum",
                             path.string(), key);
    texts[key] = text;
  }
  std::size_t offset = 0;
  for (const NamedBytes& tensor : tensors) {
    check_text(path, tensor.name);
    require<CheckpointError>(!header.contains(tensor.name), "{}: the name {} is taken", path.string(),
                             tensor.name);
    const DTypeInfo& dtype = info(tensor.dtype);
    require<CheckpointError>(
        static_cast<std::uint64_t>(tensor.shape.elements()) * dtype.bits == tensor.bytes.size() * 8,
        "{}: tensor {}: {} bytes for a shape of {} {}", path.string(), tensor.name, tensor.bytes.size(),
        tensor.shape, dtype.name);
    std::vector<std::int64_t> sizes;
    for (int d = 0; d < tensor.shape.rank(); ++d) sizes.push_back(tensor.shape[d]);
    const std::size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", dtype.name}, {"shape", sizes}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::string out(sizeof size, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  return out += text;
}

// Throws unless a header of this size fits into the rest of the file and the limit of the format.
void check_header_size(const std::string& file, std::uint64_t size, std::uint64_t rest) {
  require<CheckpointError>(
      size <= rest,
      "{}: the header size {} is more than the file holds; it is truncated or not a safetensors file", file,
      size);
  require<CheckpointError>(size <= kMaxHeader,
                           "{}: the header size {} is more than the {} bytes of the format", file, size,
                           kMaxHeader);
}

// Returns the header of a file. Throws, before its text is read, if it is longer than the file or the format.
template <class Read>
SafetensorsHeader read_header(const Read& read, std::uint64_t file_size, const std::string& name,
                              std::uint64_t& size) {
  const std::string start = read(0, sizeof size);
  require<CheckpointError>(start.size() == sizeof size, "{}: {} bytes are too few for a safetensors file",
                           name, start.size());
  std::memcpy(&size, start.data(), sizeof size);
  check_header_size(name, size, file_size - sizeof size);
  return parse_safetensors_header(read(sizeof size, size), name);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::string content = describe(path, tensors, metadata, true);
  std::size_t whole = content.size();
  for (const NamedBytes& tensor : tensors) whole += tensor.bytes.size();
  content.reserve(whole);
  for (const NamedBytes& tensor : tensors) {
    content.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  content.replace(kDigits, kDigitCount, hash_digits(content));
  write_file(path, content);
}

std::string safetensors_header(std::span<const NamedBytes> tensors,
                               const std::map<std::string, std::string>& metadata) {
  return describe("header", tensors, metadata, false);
}

std::map<std::string, std::string> read_safetensors_metadata(const InputFile& file, const std::string& name) {
  std::uint64_t size = 0;
  const auto read = [&](std::uint64_t offset, std::uint64_t count) { return file.read(offset, count); };
  return read_header(read, file.size(), name, size).metadata;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : name_(path.string()) {
  try {
    file_ = std::make_shared<const InputFile>(path);
    size_ = file_->size();
    parse();
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
}

SafetensorsFile::SafetensorsFile(std::shared_ptr<const InputFile> file, std::string name)
    : name_(std::move(name)), file_(std::move(file)), size_(file_->size()) {
  parse();
}

SafetensorsFile::SafetensorsFile(std::string content, std::string name)
    : name_(std::move(name)), content_(std::move(content)), size_(content_.size()) {
  parse();
}

SafetensorsFile::SafetensorsFile(const SafetensorsHeader& header, std::string content, std::string name)
    : name_(std::move(name)), content_(std::move(content)), size_(content_.size()) {
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, content_.data(), sizeof header_size);
  set_header(header, header_size);
}

std::string SafetensorsFile::bytes(std::uint64_t offset, std::uint64_t count) const {
  return file_ ? file_->read(offset, count) : content_.substr(offset, count);
}

void SafetensorsFile::parse() {
  std::uint64_t header_size = 0;
  const auto read = [this](std::uint64_t offset, std::uint64_t count) { return bytes(offset, count); };
  const SafetensorsHeader header = read_header(read, size_, name_, header_size);
  set_header(header, header_size);
}

void SafetensorsFile::set_header(const SafetensorsHeader& header, std::uint64_t header_size) {
  data_ = sizeof header_size + header_size;
  metadata_ = header.metadata;
  if (file_) {  // before all of it is read
    std::uint64_t end = 0;
    for (const auto& tensor : header.tensors) end = std::max(end, tensor.offsets[1]);
    require<CheckpointError>(size_ - data_ <= end, "{}: {} bytes of data follow the last tensor", name_,
                             size_ - data_ - end);
  }
  check_checksum();
  for (const auto& tensor : header.tensors)
    entries_[tensor.name] = checked_entry(name_, tensor, size_ - data_);
  check_layout();
}

void SafetensorsFile::check_checksum() {
  const auto is = [&](const char* key, auto&& wanted) {
    const auto found = metadata_.find(key);
    return found != metadata_.end() && wanted(found->second);
  };
  std::string start = bytes(0, kDigits + kDigitCount);
  const bool at_its_place =
      std::string_view(start).substr(sizeof(std::uint64_t)).starts_with(kBeforeDigits) &&
      is(kChecksumKey, [](const std::string& digits) { return digits.size() == kDigitCount; });
  const bool named = is(kAlgorithmKey, [](const std::string& name) { return name == kAlgorithm; });
  if (!at_its_place && !named) return;
  bool matches = at_its_place && named;
  if (matches) {
    constexpr std::uint64_t kPiece = 1 << 20;
    const std::string expected = start.substr(kDigits);
    StreamHash hash;
    hash.add(start.replace(kDigits, kDigitCount, kDigitCount, '0'));
    for (std::uint64_t at = start.size(); at < size_; at += kPiece)
      hash.add(bytes(at, std::min(kPiece, size_ - at)));
    matches = hash.digits() == expected;
  }
  require<CheckpointError>(matches, "{}: the checksum does not match: the file is damaged", name_);
  metadata_.erase(kChecksumKey);
  metadata_.erase(kAlgorithmKey);
}

void SafetensorsFile::require_unchanged() const {
  require<CheckpointError>(!file_ || !file_->has_changed(), "{}: was written to while it was read; try again",
                           name_);
}

// Throws unless the tensors fill the data, one after the other.
void SafetensorsFile::check_layout() const {
  using Item = std::pair<const std::string, Entry>;
  std::vector<const Item*> order;
  for (const Item& item : entries_) order.push_back(&item);
  std::ranges::sort(order, {}, [](const Item* i) { return std::pair(i->second.begin, i->second.end); });
  std::size_t at = 0;
  for (const Item* item : order) {
    require<CheckpointError>(
        item->second.begin == at,
        "{}: tensor {}: begins at byte {} of the data, not at {} where the one before ends; tensors leave no hole and do not overlap",
        name_, printable(item->first), item->second.begin, at);
    at = item->second.end;
  }
  require<CheckpointError>(at == size_ - data_, "{}: {} bytes of data follow the last tensor", name_,
                           size_ - data_ - at);
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  require<CheckpointError>(found != entries_.end(), "{}: there is no tensor {}", name_, name);
  return found->second;
}

template <class T>
std::vector<T> SafetensorsFile::values(const std::string& name) const {
  const Entry& e = entry(name);
  const std::string data = bytes(data_ + e.begin, e.end - e.begin);
  require<CheckpointError>(data.size() == e.end - e.begin, "{}: was cut while it was read; try again", name_);
  constexpr bool is_mask = sizeof(T) == 1;
  if (is_mask && e.dtype == DType::boolean) return convert<std::uint8_t, T>(data);
  if (!is_mask && e.dtype == DType::i64) return convert<std::int64_t, T>(data);
  if (std::is_integral_v<T> && !is_mask && e.dtype == DType::i32) return convert<std::int32_t, T>(data);
  if constexpr (std::is_floating_point_v<T>) {
    if (e.dtype == DType::f64) return convert<double, T>(data);
    if (e.dtype == DType::f32) return convert<float, T>(data);
    if (e.dtype == DType::f16) return convert<Half, T>(data);
    if (e.dtype == DType::bf16) return convert<Bfloat, T>(data);
  }
  throw CheckpointError(fmt::format("{}: tensor {}: elements of type {} cannot be read as {}", name_,
                                    printable(name), info(e.dtype).name,
                                    is_mask                       ? "a mask; store BOOL"
                                    : std::is_floating_point_v<T> ? "real numbers; store F32 or F64"
                                                                  : "integers; store I32 or I64"));
}

template std::vector<float> SafetensorsFile::values<float>(const std::string&) const;
template std::vector<double> SafetensorsFile::values<double>(const std::string&) const;
template std::vector<std::int64_t> SafetensorsFile::values<std::int64_t>(const std::string&) const;
template std::vector<std::int32_t> SafetensorsFile::values<std::int32_t>(const std::string&) const;
template std::vector<std::uint8_t> SafetensorsFile::values<std::uint8_t>(const std::string&) const;

}  // namespace thimble
