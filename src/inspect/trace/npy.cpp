#include "inspect/trace/npy.h"

#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "thimble/engine/error.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/run.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they are in memory");

// Returns the header, padded so that the elements start at a multiple of 64 bytes.
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

// All files that write_attention may write.
constexpr const char* kFiles[] = {"attention.npy", "encoder.npy", "decoder.npy", "cross.npy",
                                  "tokens.npy",    "lengths.npy", "sources.npy", "source_lengths.npy"};

}  // namespace

NpyFile::NpyFile(const fs::path& path, Type type, std::span<const std::int64_t> shape)
    : file_(path),
      type_(type),
      missing_(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())) {
  file_.append(header(type, shape));
}

void NpyFile::append(Type type, std::span<const std::byte> bytes) {
  const std::int64_t elements = std::ssize(bytes) / 4;
  require<ShapeError>(type == type_, "npy: the elements have another type than the array");
  require<ShapeError>(elements <= missing_, "npy: {} elements exceed the {} that are missing", elements,
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
  for (const char* name : kFiles) const NewFile probe(directory / name);
}

namespace {

// The files of tokens and lengths, written sequence by sequence.
class TokenFiles {
 public:
  TokenFiles(const fs::path& tokens, const fs::path& lengths, std::int64_t sequences, std::int64_t longest)
      : longest_(longest),
        tokens_(tokens, NpyFile::Type::int32, std::array{sequences, longest}),
        lengths_(lengths, NpyFile::Type::int32, std::array{sequences}) {}

  void append(std::vector<std::int32_t> tokens) {
    const auto length = static_cast<std::int32_t>(tokens.size());
    tokens.resize(static_cast<std::size_t>(longest_), -1);
    tokens_.append(tokens);
    lengths_.append(std::span(&length, 1));
  }
  void commit() {
    tokens_.commit();
    lengths_.commit();
  }

 private:
  std::int64_t longest_;
  NpyFile tokens_, lengths_;
};

// Appends the weights of a head, padded to (rows, columns) with NaN.
void append(std::vector<float>& out, std::span<const double> weights, std::int64_t used_columns,
            std::int64_t rows, std::int64_t columns) {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  out.resize(out.size() + static_cast<std::size_t>(rows * columns), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = 0; i < std::ssize(weights) / used_columns; ++i)
    std::copy_n(weights.begin() + i * used_columns, used_columns, out.begin() + first + i * columns);
}

}  // namespace

void write_attention(const ModelSource& model, Split split, std::int64_t count, const fs::path& directory) {
  const OpenConfig& config = model.config;
  const std::int64_t sequences = readable(model, split, count);
  const ModelSizes sizes = model_sizes(config);
  const auto longest = [&](bool of_source) { return of_source ? sizes.source_length : sizes.length; };
  const std::vector<AttentionLayer> layers = attention_layers(config.model);
  NewDirectory made(directory);
  std::map<std::string, NpyFile> attention;  // by stack
  std::optional<TokenFiles> tokens, sources;
  // Opened after the model is read: running out of memory in JSON ends the program and would leave files
  // behind.
  const auto open_files = [&] {
    for (const AttentionLayer& layer : layers) {
      const std::string file = (layer.stack.empty() ? "attention" : layer.stack) + ".npy";
      attention.try_emplace(layer.stack, directory / file, NpyFile::Type::float32,
                            std::array{sequences, config.model.layers, layer.heads,
                                       longest(layer.queries_source), longest(layer.keys_source)});
    }
    tokens.emplace(directory / "tokens.npy", directory / "lengths.npy", sequences, sizes.length);
    if (sizes.source_length > 0)
      sources.emplace(directory / "sources.npy", directory / "source_lengths.npy", sequences,
                      sizes.source_length);
  };

  trace_split(model, split, sequences,
              [&](const ForwardTrace& trace) {
                if (!tokens) open_files();
                for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
                  const AttentionLayer& layer = layers[static_cast<std::size_t>(l)];
                  std::vector<float> weights;
                  for (std::int64_t head = 0; head < layer.heads; ++head)
                    append(weights, trace.weights(config.model, {l, head}), trace.keys(layer),
                           longest(layer.queries_source), longest(layer.keys_source));
                  attention.at(layer.stack).append(weights);
                }
                tokens->append(trace.tokens);
                if (sources) sources->append(trace.source);
              },
              {.logits = false});
  if (!tokens) open_files();  // there are no sequences
  for (auto& [name, file] : attention) file.commit();
  tokens->commit();
  if (sources) sources->commit();
  made.keep();
}

}  // namespace thimble
