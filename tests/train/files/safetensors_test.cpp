#include "thimble/train/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.h"
#include "safetensors_text.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;
using namespace thimble::tests;

namespace {

template <class T>
NamedBytes named(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
  return {name, dtype, shape, std::as_bytes(std::span(values))};
}

}  // namespace

TEST_CASE("tensors and metadata come back as they were written", "[files]") {
  const TemporaryDirectory directory;
  const std::vector<float> f{1.5f, -2, 0.1f, std::numeric_limits<float>::infinity(), 1e-40f, 3};
  const std::vector<double> d{0.1, -1e300};
  const std::vector<std::int64_t> i{std::numeric_limits<std::int64_t>::min(), 7, (std::int64_t{1} << 53) + 1};
  const std::vector<float> scalar{4}, none;
  const std::vector<NamedBytes> tensors{
      named("z.first", DType::f32, {2, 3}, f), named("a \"quoted\" name", DType::f64, {2}, d),
      named("numbers", DType::i64, {3, 1, 1}, i), named("scalar", DType::f32, {}, scalar),
      named("none", DType::f32, {0, 4}, none)};
  write_safetensors(directory / "file", tensors, {{"format", "thimble 1"}, {"text", "a\nb: \xc3\xa9"}});
  const SafetensorsFile file(directory / "file");
  CHECK(file.entries().size() == tensors.size());
  CHECK(file.metadata() ==
        std::map<std::string, std::string>{{"format", "thimble 1"}, {"text", "a\nb: \xc3\xa9"}});
  CHECK(file.values<float>("z.first") == f);
  CHECK(file.values<double>("a \"quoted\" name") == d);
  CHECK(file.values<std::int64_t>("numbers") == i);
  CHECK(file.values<float>("scalar") == scalar);
  CHECK(file.values<float>("none").empty());
  for (const NamedBytes& tensor : tensors) {
    CHECK(file.entry(tensor.name).shape == tensor.shape);
    CHECK(file.entry(tensor.name).dtype == tensor.dtype);
  }
}

TEST_CASE("values are converted to the type that is asked for", "[files]") {
  const TemporaryDirectory directory;
  const std::vector<double> d{0.1, -2};
  const std::vector<std::int64_t> i{3, -4};
  write_safetensors(directory / "file",
                    std::vector{named("d", DType::f64, {2}, d), named("i", DType::i64, {2}, i)}, {});
  const SafetensorsFile file(directory / "file");
  CHECK(file.values<float>("d") == std::vector<float>{0.1f, -2});
  CHECK(file.values<double>("i") == std::vector<double>{3, -4});
}

TEST_CASE("16-bit floating-point numbers are converted", "[files]") {
  const std::vector<std::uint16_t> half{0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff, 0x3555, 0x7c00, 0x8000};
  const std::vector<std::uint16_t> brain{0x3f80, 0xc000, 0x7f80, 0x3eab};
  const TemporaryDirectory directory;
  write_safetensors(
      directory / "file",
      std::vector{named("half", DType::f16, {8}, half), named("brain", DType::bf16, {4}, brain)}, {});
  const SafetensorsFile file(directory / "file");
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(file.values<float>("half") ==
        std::vector<float>{1, -2, 65504, 0x1p-24f, 1023 * 0x1p-24f, 0x1.554p-2f, infinity, 0});
  CHECK(std::signbit(file.values<float>("half")[7]));
  CHECK(file.values<double>("brain") == std::vector<double>{1, -2, infinity, 0x1.56p-2});
  const std::string nan = file_text(object({entry("w", "F16", "[1]", "[0,2]")}), 0) + "\x01\x7e";
  CHECK(std::isnan(SafetensorsFile(nan, "FILE").values<float>("w")[0]));
}

TEST_CASE("values of a type that cannot be converted are refused, with tensor and type", "[files]") {
  const SafetensorsFile file(
      file_text(object({entry("w", "U8", "[4]", "[0,4]"), entry("x", "F32", "[1]", "[4,8]")}), 8), "FILE");
  CHECK_THROWS_AS(file.values<double>("w"), CheckpointError);
  CHECK_THROWS_WITH(file.values<double>("w"),
                    "FILE: tensor w: elements of type U8 cannot be read as real numbers; store F32 or F64");
  CHECK_THROWS_WITH(file.values<std::int64_t>("x"),
                    "FILE: tensor x: elements of type F32 cannot be read as integers; store I32 or I64");
}

TEST_CASE("a file with any bit flipped is refused, and so is one that ends early or late", "[files]") {
  const TemporaryDirectory directory;
  const std::vector<float> a{1, 2}, b{3};
  write_safetensors(directory / "file",
                    std::vector{named("b", DType::f32, {2}, a), named("a", DType::f32, {}, b)}, {{"k", "v"}});
  const std::string whole = read_file(directory / "file");
  REQUIRE(complaint(whole) == "accepted");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    CAPTURE(bit);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    CHECK(complaint(damaged) != "accepted");
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(complaint(whole.substr(0, size)) != "accepted");
  }
  CHECK(complaint(whole + '\0') != "accepted");
  CHECK(complaint(whole.substr(0, whole.size() - 1) + '\1') ==
        "the checksum does not match: the file is damaged");
}

TEST_CASE("a checksum of another length does not match", "[files]") {
  const std::string text =
      file_text(R"({"__metadata__":{"checksum":"0123","checksum_algorithm":"XXH3-64"}})", 0);
  CHECK(complaint(text) == "the checksum does not match: the file is damaged");
}

TEST_CASE("a checksum of another kind is metadata like any other", "[files]") {
  const std::string text =
      file_text(R"({"__metadata__":{"a":"","checksum":"0123456789abcdef","checksum_algorithm":"other"}})", 0);
  CHECK(SafetensorsFile(text, "FILE").metadata().size() == 3);
}

TEST_CASE("what could not be read back is not written", "[files]") {
  const TemporaryDirectory directory;
  const std::vector<float> a{1, 2};
  const auto refused = [&](const std::vector<NamedBytes>& tensors,
                           const std::map<std::string, std::string>& metadata) {
    const std::string file = (directory / "file").string() + ": ";
    try {
      write_safetensors(directory / "file", tensors, metadata);
    } catch (const CheckpointError& e) {
      const std::string message = e.what();
      return message.starts_with(file) ? message.substr(file.size()) : message;
    }
    return std::string("written");
  };
  const NamedBytes w = named("w", DType::f32, {2}, a);
  CHECK(refused({w, w}, {}) == "the name w is taken");
  CHECK(refused({named("__metadata__", DType::f32, {2}, a)}, {}) == "the name __metadata__ is taken");
  CHECK(refused({named("w\xff", DType::f32, {2}, a)}, {}) == "w\\x{ff} is not UTF-8 and cannot be written");
  CHECK(refused({w}, {{"k", "\xff"}}) == "\\x{ff} is not UTF-8 and cannot be written");
  CHECK(refused({w}, {{"checksum", "mine"}}) == "metadata checksum is reserved for the checksum");
  CHECK(refused({named("w", DType::f64, {2}, a)}, {}) == "tensor w: 8 bytes for a shape of (2) F64");
  CHECK(directory.files() == 0);
}

TEST_CASE("the layout in the file is that of the format", "[files]") {
  const TemporaryDirectory directory;
  const std::vector<float> a{1, 2}, b{3};
  write_safetensors(directory / "file",
                    std::vector{named("b", DType::f32, {2}, a), named("a", DType::f32, {1}, b)},
                    {{"k", "v"}});
  const std::string content = read_file(directory / "file");
  std::uint64_t size = 0;
  std::memcpy(&size, content.data(), sizeof size);
  CHECK(size % 8 == 0);  // so that the data is aligned
  CHECK(
      content.substr(8, size).find(
          R"({"__metadata__":{"checksum":")" + content.substr(37, 16) +
          R"(","checksum_algorithm":"XXH3-64","k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})") == 0);
  float last = 0;
  std::memcpy(&last, content.data() + 8 + size + 8, sizeof last);
  CHECK(last == 3);
  CHECK(content.size() == 8 + size + 12);
}

TEST_CASE("a tensor that is not in the file is named", "[files]") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "file", {}, {});
  const SafetensorsFile file(directory / "file");
  CHECK_THROWS_AS(file.entry("w"), CheckpointError);
  CHECK_THROWS_WITH(file.values<float>("w"), (directory / "file").string() + ": there is no tensor w");
  CHECK_THROWS_AS(SafetensorsFile(directory / "missing"), CheckpointError);
}
