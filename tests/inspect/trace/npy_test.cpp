#include "inspect/trace/npy.h"

#include <cstring>
#include <limits>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/forward_trace.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("an array file is a magic number, a padded dictionary and the elements", "[inspect]") {
  const TemporaryDirectory directory;
  NpyFile file(directory / "a.npy", NpyFile::Type::float32, std::array<std::int64_t, 2>{2, 3});
  file.append(std::vector<float>{0, 1.5F, -2, 3});
  file.append(std::vector<float>{4, 5});
  CHECK(!std::filesystem::exists(directory / "a.npy"));
  file.commit();
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }";
  dictionary.resize(117, ' ');
  const std::string expected = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary + "\n" +
                               bytes_of(std::vector<float>{0, 1.5F, -2, 3, 4, 5});
  CHECK(read_file(directory / "a.npy") == expected);
  CHECK(directory.files() == 1);

  NpyFile numbers(directory / "b.npy", NpyFile::Type::int32, std::array<std::int64_t, 1>{2});
  numbers.append(std::vector<std::int32_t>{-1, 258});
  numbers.commit();
  const std::string content = read_file(directory / "b.npy");
  CHECK(content.find("'descr': '<i4', 'fortran_order': False, 'shape': (2, ), }") != std::string::npos);
  CHECK(content.substr(128) == std::string("\xff\xff\xff\xff\x02\x01\x00\x00", 8));
}

TEST_CASE("an array with a wrong number or type of elements leaves no file", "[inspect]") {
  const TemporaryDirectory directory;
  {
    NpyFile file(directory / "a.npy", NpyFile::Type::float32, std::array<std::int64_t, 2>{2, 2});
    file.append(std::vector<float>{1, 2, 3});
    CHECK_THROWS_AS(file.commit(), ShapeError);
    CHECK_THROWS_AS(file.append(std::vector<float>{4, 5}), ShapeError);
    CHECK_THROWS_AS(file.append(std::vector<std::int32_t>{4}), ShapeError);
  }
  CHECK(directory.files() == 0);
  CHECK_THROWS_AS(NpyFile(directory / "no" / "a.npy", NpyFile::Type::int32, {}), FileError);
}

TEST_CASE("arrays of a split hold what its traces hold, padding marked", "[inspect]") {
  const SavedModel model(rich_config(), 0);
  const auto out = model.directory / "arrays";
  write_attention(model.source, Split::test, 9, out);
  std::vector<float> attention;
  std::vector<std::int32_t> tokens, lengths;
  trace_split(model.source, Split::test, 9, [&](const ForwardTrace& trace) {
    const std::size_t n = trace.tokens.size();
    for (std::size_t map = 0; map < 4; ++map)
      for (std::size_t i = 0; i < 7; ++i)
        for (std::size_t j = 0; j < 7; ++j)
          attention.push_back(i < n && j < n ? static_cast<float>(trace.attention[(map * n + i) * n + j])
                                             : std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < 7; ++i) tokens.push_back(i < n ? trace.tokens[i] : -1);
    lengths.push_back(static_cast<std::int32_t>(n));
  });
  REQUIRE(std::ranges::min(lengths) < 7);
  CHECK(read_file(out / "attention.npy").find("'shape': (9, 2, 2, 7, 7, ), }") != std::string::npos);
  CHECK(read_file(out / "attention.npy").substr(128) == bytes_of(attention));
  CHECK(read_file(out / "tokens.npy").substr(128) == bytes_of(tokens));
  CHECK(read_file(out / "lengths.npy").substr(128) == bytes_of(lengths));
}

TEST_CASE("arrays that cannot be written leave nothing behind", "[inspect]") {
  SavedModel model(small_config(), 0);
  const std::ptrdiff_t before = model.directory.files();
  CHECK_THROWS_AS(write_attention(model.source, Split::test, 9, model.source.weights), FileError);
  CHECK_THROWS_AS(write_attention(model.source, Split::test, 9, model.directory / "no" / "arrays"),
                  FileError);
  model.source.config.model.d_ff = 25;
  CHECK_THROWS_AS(write_attention(model.source, Split::test, 9, model.directory / "arrays"), CheckpointError);
  CHECK(model.directory.files() == before);
  std::filesystem::create_directory(model.directory / "mine");  // an existing folder stays
  CHECK_THROWS_AS(write_attention(model.source, Split::test, 9, model.directory / "mine"), CheckpointError);
  CHECK(std::filesystem::is_empty(model.directory / "mine"));
}

TEST_CASE("the check that arrays can be written leaves nothing behind", "[inspect]") {
  const TemporaryDirectory directory;
  CHECK_NOTHROW(require_writable_attention(directory / "arrays"));
  CHECK(directory.files() == 0);
  std::filesystem::create_directories(directory / "arrays" / "lengths.npy");
  CHECK_THROWS_AS(require_writable_attention(directory / "arrays"), FileError);
  CHECK_THROWS_AS(require_writable_attention(directory / "none" / "arrays"), FileError);
  CHECK(directory.files() == 1);
  std::filesystem::create_directories(directory / "linked");  // arrays are not written through links
  std::filesystem::create_symlink("elsewhere", directory / "linked" / "tokens.npy");
  CHECK_THROWS_AS(require_writable_attention(directory / "linked"), FileError);
}
