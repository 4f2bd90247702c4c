#include "thimble/tensor/safetensors.h"

#include <fmt/ranges.h>

#include <cstring>
#include <limits>

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"

using namespace thimble;

namespace {

// The text of a file with this header and this much data.
std::string file_text(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string text(sizeof size, '\0');
  std::memcpy(text.data(), &size, sizeof size);
  return text + header + std::string(data_bytes, '\1');
}

std::string complaint(const std::string& content) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "weights";
  write_file(path, content);
  try {
    SafetensorsFile file(path);
  } catch (const CheckpointError& e) {
    const std::string message = e.what(), name = path.string() + ": ";
    return message.substr(0, name.size()) == name ? message.substr(name.size())
                                                  : "the file is not named: " + message;
  }
  return "accepted";
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

std::string object(const std::vector<std::string>& entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

// What is said about a file of one tensor `w`, and about one of two tensors.
std::string complaint(const std::string& dtype, const std::string& shape, const std::string& offsets,
                      std::size_t bytes) {
  return complaint(file_text(object({entry("w", dtype, shape, offsets)}), bytes));
}
std::string pair_complaint(const std::string& first, const std::string& second, std::size_t bytes) {
  return complaint(
      file_text(object({entry("a", "F32", "[2]", first), entry("b", "F32", "[2]", second)}), bytes));
}

template <class T>
NamedBytes named(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
  return {name, dtype, shape, std::as_bytes(std::span(values))};
}

}  // namespace

TEST_CASE("tensors and metadata come back as they were written", "[tensor]") {
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

TEST_CASE("values are converted to the type that is asked for", "[tensor]") {
  const TemporaryDirectory directory;
  const std::vector<double> d{0.1, -2};
  const std::vector<std::int64_t> i{3, -4};
  write_safetensors(directory / "file",
                    std::vector{named("d", DType::f64, {2}, d), named("i", DType::i64, {2}, i)}, {});
  const SafetensorsFile file(directory / "file");
  CHECK(file.values<float>("d") == std::vector<float>{0.1f, -2});
  CHECK(file.values<double>("i") == std::vector<double>{3, -4});
}

TEST_CASE("the layout in the file is that of the format", "[tensor]") {
  const TemporaryDirectory directory;
  const std::vector<float> a{1, 2}, b{3};
  write_safetensors(directory / "file",
                    std::vector{named("b", DType::f32, {2}, a), named("a", DType::f32, {1}, b)},
                    {{"k", "v"}});
  const std::string content = read_file(directory / "file");
  std::uint64_t size = 0;
  std::memcpy(&size, content.data(), sizeof size);
  CHECK(size % 8 == 0);  // so that the data is aligned
  CHECK(content.substr(8, size).find(
            R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})") == 0);
  float last = 0;
  std::memcpy(&last, content.data() + 8 + size + 8, sizeof last);
  CHECK(last == 3);
  CHECK(content.size() == 8 + size + 12);
}

TEST_CASE("a tensor that is not in the file is named", "[tensor]") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "file", {}, {});
  const SafetensorsFile file(directory / "file");
  CHECK_THROWS_AS(file.entry("w"), CheckpointError);
  CHECK_THROWS_WITH(file.values<float>("w"), (directory / "file").string() + ": there is no tensor w");
  CHECK_THROWS_AS(SafetensorsFile(directory / "missing"), CheckpointError);
}

TEST_CASE("a good file is accepted: every rule below is about what differs from it", "[tensor]") {
  CHECK(complaint("F32", "[2,3]", "[0,24]", 24) == "accepted");
  CHECK(pair_complaint("[8,16]", "[0,8]", 16) == "accepted");  // in any order
  CHECK(complaint(file_text("{}   ", 0)) == "accepted");
}

TEST_CASE("a truncated file is refused", "[tensor]") {
  CHECK(complaint("") == "0 bytes are too few for a safetensors file");
  CHECK(complaint("1234567") == "7 bytes are too few for a safetensors file");
  const std::string whole = file_text(object({entry("w", "F32", "[2]", "[0,8]")}), 8);
  REQUIRE(complaint(whole) == "accepted");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(complaint(whole.substr(0, size)) != "accepted");
  }
}

TEST_CASE("a header larger than the file or than the format allows is refused", "[tensor]") {
  CHECK_THAT(complaint(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
             ContainsSubstring("the header size 16 is more than the file holds"));
  CHECK_THAT(complaint(std::string(8, '\xff') + "{}"),
             ContainsSubstring("the header size 18446744073709551615 is more"));
}

TEST_CASE("a header that is not a JSON object of tensors is refused", "[tensor]") {
  for (const char* header :
       {"", "nonsense", "[]", "3", R"({"w":)", R"({"w":3})", R"({"w":[]})", R"({"w":{}})", "\xff{}",
        R"({"__metadata__":{"a":1}})", R"({"__metadata__":"text"})"}) {
    CAPTURE(header);
    CHECK_THAT(complaint(file_text(header, 0)), StartsWith("the header is not"));
  }
}

TEST_CASE("an entry that breaks a rule is refused, and the tensor named", "[tensor]") {
  CHECK(complaint("F16", "[2]", "[0,4]", 4) == "tensor w: dtype F16 is not one of F32, F64, I64");
  CHECK(complaint("F32", "2", "[0,8]", 8) == "tensor w: the shape must be a list of at most 4 sizes");
  CHECK(complaint("F32", "[1,1,1,1,2]", "[0,8]", 8) ==
        "tensor w: the shape must be a list of at most 4 sizes");
  CHECK(complaint("F32", "[-2]", "[0,8]", 8) == "tensor w: a size in the shape is not a whole number");
  CHECK(complaint("F32", "[2.0]", "[0,8]", 8) == "tensor w: a size in the shape is not a whole number");
  CHECK(complaint("F32", "[3]", "[0,8]", 8) == "tensor w: the shape needs more bytes than the file has");
  CHECK(complaint("F32", "[4611686018427387905]", "[0,4]", 4) ==
        "tensor w: the shape needs more bytes than the file has");
  CHECK(complaint("F32", "[2]", "[0,16]", 16) == "tensor w: 16 bytes of data for a shape that needs 8");
  CHECK(complaint("F64", "[1]", "[0,4]", 8) == "tensor w: 4 bytes of data for a shape that needs 8");
}

TEST_CASE("offsets that leave the data are refused", "[tensor]") {
  for (const char* offsets : {"[8,0]", "[0,12]", "[4,12]", "[1000000000000,1000000000008]"}) {
    CAPTURE(offsets);
    CHECK_THAT(complaint("F32", "[2]", offsets, 8), ContainsSubstring("leave the data of 8 bytes"));
  }
  for (const char* offsets : {"[0]", "[0,8,8]", "[-8,0]", "8", "[0,8.0]", "[0,18446744073709551616]"}) {
    CAPTURE(offsets);
    CHECK(complaint("F32", "[2]", offsets, 8) == "tensor w: data_offsets must be two whole numbers");
  }
}

TEST_CASE("tensors that overlap, or leave bytes between or after them, are refused", "[tensor]") {
  CHECK(pair_complaint("[0,8]", "[4,12]", 12) == "the tensors leave a hole or overlap at byte 8 of the data");
  CHECK(pair_complaint("[0,8]", "[0,8]", 8) == "the tensors leave a hole or overlap at byte 8 of the data");
  CHECK(pair_complaint("[0,8]", "[12,20]", 20) ==
        "the tensors leave a hole or overlap at byte 8 of the data");
  CHECK(complaint("F32", "[2]", "[4,12]", 12) == "the tensors leave a hole or overlap at byte 0 of the data");
  CHECK(complaint("F32", "[2]", "[0,8]", 9) == "1 bytes of data follow the last tensor");
  CHECK(complaint(file_text("{}", 3)) == "3 bytes of data follow the last tensor");
}

TEST_CASE("sizes of an empty tensor are checked too", "[tensor]") {
  CHECK(complaint("F32", "[0,3]", "[0,0]", 0) == "accepted");
  CHECK_THAT(complaint("F32", "[0,18446744073709551615]", "[0,0]", 0), StartsWith("tensor w: "));
}
