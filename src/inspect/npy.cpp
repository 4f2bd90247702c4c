#include "thimble/inspect/npy.h"

#include <bit>
#include <functional>
#include <numeric>

#include "thimble/inspect/passage.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they are in memory");

// The dictionary is padded so that the elements start at a multiple of 64 bytes.
std::string header(NpyFile::Type type, std::span<const std::int64_t> shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                       type == NpyFile::Type::float32 ? "<f4" : "<i4", sizes);
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t kAlign = 64, kFixed = kMagic.size() + 2;
  dictionary.append((kAlign - (kFixed + dictionary.size() + 1) % kAlign) % kAlign, ' ');
  dictionary += '\n';
  const std::size_t size = dictionary.size();
  return std::string(kMagic) + static_cast<char>(size % 256) + static_cast<char>(size / 256) + dictionary;
}

constexpr const char* kAttention = "attention.npy";
constexpr const char* kTokens = "tokens.npy";
constexpr const char* kLengths = "lengths.npy";

}  // namespace

NpyFile::NpyFile(const fs::path& path, Type type, std::span<const std::int64_t> shape)
    : file_(path),
      type_(type),
      missing_(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())) {
  file_.append(header(type, shape));
}

void NpyFile::append(Type type, std::span<const std::byte> bytes) {
  const std::int64_t elements = std::ssize(bytes) / 4;
  require<ShapeError>(type == type_, "npy: elements of another type than the array's");
  require<ShapeError>(elements <= missing_, "npy: {} elements, the array has room for {} more", elements,
                      missing_);
  missing_ -= elements;
  file_.append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void NpyFile::append(std::span<const float> elements) { append(Type::float32, std::as_bytes(elements)); }
void NpyFile::append(std::span<const std::int32_t> elements) { append(Type::int32, std::as_bytes(elements)); }

void NpyFile::commit() {
  require<ShapeError>(missing_ == 0, "npy: {} elements are missing", missing_);
  file_.commit();
}

void require_writable_attention(const fs::path& directory) {
  const NewDirectory made(directory);
  for (const char* name : {kAttention, kTokens, kLengths}) require_writable(directory / name);
}

void write_attention(const ModelSource& source, Split split, std::int64_t count, const fs::path& directory) {
  const ModelConfig& model = source.config.model;
  const std::int64_t sequences = readable(source, split, count);
  const std::int64_t length = model_length(source.config.task, layout_of(model));
  const std::int64_t maps = model.layers * model.heads;
  NewDirectory made(directory);
  using enum NpyFile::Type;
  NpyFile attention(directory / kAttention, float32,
                    std::array{sequences, model.layers, model.heads, length, length});
  NpyFile tokens(directory / kTokens, int32, std::array{sequences, length});
  NpyFile lengths(directory / kLengths, int32, std::array{sequences});

  read_split(source, split, sequences, [&](const Passage& passage) {
    const auto used = static_cast<std::int32_t>(passage.tokens.size());
    std::vector<float> weights(static_cast<std::size_t>(maps * length * length));
    for (std::int64_t row = 0; row < maps * used; ++row) {
      const std::int64_t map = row / used, query = row % used;
      std::copy_n(passage.attention.begin() + row * used, used,
                  weights.begin() + (map * length + query) * length);
    }
    std::vector<std::int32_t> padded = passage.tokens;
    padded.resize(static_cast<std::size_t>(length), -1);
    attention.append(weights);
    tokens.append(padded);
    lengths.append(std::span(&used, 1));
  });
  attention.commit();
  tokens.commit();
  lengths.commit();
  made.keep();
}

}  // namespace thimble
