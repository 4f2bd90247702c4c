// Files that break the format: a test for every rule.
#include "catch.h"
#include "safetensors_text.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;
using namespace thimble::tests;

TEST_CASE("a good file is accepted: every rule below is about what differs from it", "[files]") {
  CHECK(complaint("F32", "[2,3]", "[0,24]", 24) == "accepted");
  CHECK(pair_complaint("[8,16]", "[0,8]", 16) == "accepted");  // in any order
  CHECK(complaint(file_text("{}   ", 0)) == "accepted");
}

TEST_CASE("an empty file is refused, and one that ends within the header size", "[files]") {
  CHECK(complaint("") == "0 bytes are too few for a safetensors file");
  CHECK(complaint("1234567") == "7 bytes are too few for a safetensors file");
  const TemporaryDirectory directory;
  write_file(directory / "empty", "");
  CHECK_THROWS_WITH(SafetensorsFile(directory / "empty"),
                    (directory / "empty").string() + ": 0 bytes are too few for a safetensors file");
}

TEST_CASE("a header larger than the file or than the format allows is refused", "[files][slow]") {
  CHECK_THAT(complaint(std::string("\x10\0\0\0\0\0\0\0{}", 10)),
             ContainsSubstring("the header size 16 is more than the file holds"));
  CHECK_THAT(complaint(std::string(8, '\xff') + "{}"),
             ContainsSubstring("the header size 18446744073709551615 is more"));
  CHECK(complaint(file_text(std::string("{}").append(99'999'998, ' '), 0)) == "accepted");
  CHECK(complaint(file_text(std::string("{}").append(99'999'999, ' '), 0)) ==
        "the header size 100000001 is more than the 100000000 bytes of the format");
}

TEST_CASE("a header that is not one JSON object is refused", "[files]") {
  for (const char* header : {"", "nonsense", "[]", "3", " {}", "\n{}", "\xef\xbb\xbf{}", R"({"w":)", "{}\n",
                             "{}\t", "{} x", "{}[]", "}"}) {
    CAPTURE(header);
    CHECK(complaint(file_text(header, 0)) ==
          "the header is not a JSON object, from { to } and then only spaces");
  }
  CHECK(complaint(file_text("{} {}", 0)) == "the header: not valid JSON at byte 4");
  CHECK(complaint(file_text("{\"w\"}", 0)) == "the header: not valid JSON at byte 5");
  CHECK(complaint(file_text("{'w':{}}", 0)) == "the header: not valid JSON at byte 2");
  CHECK(complaint(file_text(std::string("{}\0{}", 5), 0)) == "the header: not valid JSON at byte 3");
  CHECK(complaint(file_text("{ }", 0)) == "accepted");
}

TEST_CASE("a header that is not UTF-8 is refused", "[files]") {
  CHECK(complaint(file_text(object({entry("w\xff", "F32", "[0]", "[0,0]")}), 0)) ==
        "the header is not UTF-8 at its byte 4");
  CHECK(complaint(file_text(object({entry("\xed\xa0\x80", "F32", "[0]", "[0,0]")}), 0)) ==
        "the header is not UTF-8 at its byte 3");
  CHECK_THAT(complaint(file_text(object({entry("\\ud800", "F32", "[0]", "[0,0]")}), 0)),
             StartsWith("the header: not valid JSON"));
}

TEST_CASE("a duplicate key is refused, wherever", "[files]") {
  const std::string w = entry("w", "F32", "[0]", "[0,0]");
  CHECK(complaint(file_text(object({w, w}), 0)) == "the header: duplicate key w");
  CHECK(complaint(file_text(object({w, entry("\\u0077", "F32", "[0]", "[0,0]")}), 0)) ==
        "the header: duplicate key w");
  CHECK(complaint(file_text(R"({"__metadata__":{},"__metadata__":{}})", 0)) ==
        "the header: duplicate key __metadata__");
  CHECK(complaint(file_text(R"({"__metadata__":{"a":"","a":""}})", 0)) == "the header: duplicate key a");
  for (const char* more : {R"("dtype":"F32")", R"("x":1,"x":1)", R"("x":[{"y":1,"y":1}])"}) {
    CAPTURE(more);
    CHECK_THAT(complaint(file_text(fmt::format("{{{},{}}}}}", w.substr(0, w.size() - 1), more), 0)),
               StartsWith("the header: duplicate key "));
  }
}

TEST_CASE("metadata other than texts is refused", "[files]") {
  for (const char* metadata :
       {R"("text")", "3", "null", "[]", R"({"a":1})", R"({"a":null})", R"({"a":{}})", R"({"a":["b"]})"}) {
    CAPTURE(metadata);
    CHECK(complaint(file_text(fmt::format(R"({{"__metadata__":{}}})", metadata), 0)) ==
          "__metadata__ in the header must be an object of texts");
  }
  CHECK(complaint(file_text(R"({"__metadata__":{}})", 0)) == "accepted");
}

TEST_CASE("a tensor that is not an object of three keys is refused; further keys are not read", "[files]") {
  for (const char* tensor : {"3", "[]", "null", R"("F32")"}) {
    CAPTURE(tensor);
    CHECK(complaint(file_text(fmt::format(R"({{"w":{}}})", tensor), 0)) ==
          "tensor w: must be an object of dtype, shape and data_offsets");
  }
  CHECK(complaint(file_text(R"({"w":{"shape":[0],"data_offsets":[0,0]}})", 0)) ==
        "tensor w: dtype is missing");
  CHECK(complaint(file_text(R"({"w":{"dtype":"F32","data_offsets":[0,0]}})", 0)) ==
        "tensor w: shape is missing");
  CHECK(complaint(file_text(R"({"w":{"dtype":"F32","shape":[0]}})", 0)) ==
        "tensor w: data_offsets is missing");
  CHECK(complaint(file_text(R"({"w":{"x":[1,{"shape":2},[[]]],"y":-1.5,"dtype":"F32","shape":[0],)"
                            R"("data_offsets":[0,0],"z":true}})",
                            0)) == "accepted");
}

TEST_CASE("JSON that nests too deep is refused, and takes no stack", "[files]") {
  const auto nested = [](std::size_t depth) {
    const std::string inner = std::string(depth, '[') + std::string(depth, ']');
    return complaint(
        file_text(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":)" + inner + "}}", 0));
  };
  CHECK(nested(125) == "accepted");
  for (const std::size_t depth : {126, 4'000'000})
    CHECK(nested(depth) == "the header: nests more than 127 deep");
}

TEST_CASE("every type of the format has its size", "[files]") {
  for (const auto& [dtype, bits] : std::vector<std::pair<std::string, std::size_t>>{
           {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
           {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
           {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
           {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
           {"I64", 64},        {"U64", 64}}) {
    CAPTURE(dtype);
    const std::string offsets = fmt::format("[0,{}]", bits), less = fmt::format("[0,{}]", bits - 1);
    CHECK(complaint(dtype, "[8]", offsets, bits) == "accepted");
    CHECK(complaint(dtype, "[8]", less, bits - 1) ==
          fmt::format("tensor w: {} bytes of data for a shape that needs {}", bits - 1, bits));
  }
  CHECK(complaint("F4", "[3]", "[0,1]", 1) == "tensor w: 3 elements of 4 bits do not fill whole bytes");
  CHECK(complaint("F33", "[2]", "[0,8]", 8) == "tensor w: dtype F33 is not one of the format's");
  CHECK(complaint(file_text(R"({"w":{"dtype":3,"shape":[0],"data_offsets":[0,0]}})", 0)) ==
        "tensor w: dtype must be a text");
}

TEST_CASE("a shape that breaks a rule is refused, and the tensor named", "[files]") {
  for (const char* shape : {"2", "{}", "null", "[1,1,1,1,2]"}) {
    CAPTURE(shape);
    CHECK(complaint("F32", shape, "[0,8]", 8) == "tensor w: the shape must be a list of at most 4 sizes");
  }
  for (const char* shape :
       {"[-2]", "[-0]", "[2.0]", "[1e1]", "[null]", "[[2]]", R"(["2"])", "[18446744073709551616]"}) {
    CAPTURE(shape);
    CHECK(complaint("F32", shape, "[0,8]", 8) == "tensor w: a size in the shape is not a whole number");
  }
  CHECK(complaint("F32", "[3]", "[0,8]", 8) == "tensor w: 8 bytes of data for a shape that needs 12");
  CHECK(complaint("F32", "[2]", "[0,16]", 16) == "tensor w: 16 bytes of data for a shape that needs 8");
  CHECK(complaint("F64", "[1]", "[0,4]", 8) == "tensor w: 4 bytes of data for a shape that needs 8");
  for (const char* shape : {"[4611686018427387905]", "[4294967296,4294967296]", "[18446744073709551615]",
                            "[4294967296,4294967296,0]"}) {
    CAPTURE(shape);
    CHECK(complaint("F32", shape, "[0,4]", 4) == "tensor w: the shape has more elements than any file");
  }
}

TEST_CASE("offsets that leave the data are refused", "[files]") {
  for (const char* offsets : {"[8,0]", "[0,12]", "[4,12]", "[1000000000000,1000000000008]"}) {
    CAPTURE(offsets);
    CHECK_THAT(complaint("F32", "[2]", offsets, 8), ContainsSubstring("leave the data of 8 bytes"));
  }
  for (const char* offsets :
       {"[]", "[0]", "[0,8,8]", "[-8,0]", "8", "[0,8.0]", "[0,18446744073709551616]", "[[0,8]]", "null"}) {
    CAPTURE(offsets);
    CHECK(complaint("F32", "[2]", offsets, 8) == "tensor w: data_offsets must be two whole numbers");
  }
}

TEST_CASE("tensors that overlap, or leave bytes before, between or after them, are refused", "[files]") {
  const auto begins_at = [](int byte) {
    return fmt::format(
        "tensor b: begins at byte {} of the data, not at 8 where the one before ends; tensors leave no hole and do not overlap",
        byte);
  };
  CHECK(pair_complaint("[0,8]", "[4,12]", 12) == begins_at(4));
  CHECK(pair_complaint("[0,8]", "[0,8]", 8) == begins_at(0));
  CHECK(pair_complaint("[0,8]", "[12,20]", 20) == begins_at(12));
  CHECK_THAT(complaint("F32", "[2]", "[4,12]", 12), StartsWith("tensor w: begins at byte 4 of the data"));
  CHECK(complaint("F32", "[2]", "[0,8]", 9) == "1 bytes of data follow the last tensor");
  CHECK(complaint(file_text("{}", 3)) == "3 bytes of data follow the last tensor");
}

TEST_CASE("empty tensors and scalars are as good as others", "[files]") {
  for (const char* shape : {"[0]", "[0,3]", "[1000000,0]", "[0,1000000000]"}) {
    CAPTURE(shape);
    CHECK(complaint("F32", shape, "[0,0]", 0) == "accepted");
  }
  CHECK(complaint("F32", "[]", "[0,4]", 4) == "accepted");
  CHECK(complaint("F32", "[]", "[0,0]", 0) == "tensor w: 0 bytes of data for a shape that needs 4");
  const SafetensorsFile file(
      file_text(object({entry("a", "F32", "[0]", "[0,0]"), entry("b", "F32", "[]", "[0,4]"),
                        entry("c", "F32", "[2,0]", "[4,4]")}),
                4),
      "FILE");
  CHECK(file.values<float>("a").empty());
  CHECK(file.values<float>("b").size() == 1);
  CHECK(file.entry("c").shape == Shape{2, 0});
}

TEST_CASE("a name may be any text, and is quoted on one line", "[files]") {
  const std::string name = "\xe2\x82\xac \"'\\/\n\x01";
  const std::string json = "\xe2\x82\xac \\\"'\\\\\\/\\n\\u0001";
  const SafetensorsFile file(
      file_text(object({entry(json, "F32", "[1]", "[0,4]"), entry("", "F32", "[0]", "[4,4]")}), 4), "FILE");
  CHECK(file.entries().contains(name));
  CHECK(file.entries().contains(""));
  CHECK(complaint(file_text(object({entry(json, "F32", "[1]", "[0,5]")}), 5)) ==
        "tensor \xe2\x82\xac \"'\\/\\u{a}\\u{1}: 5 bytes of data for a shape that needs 4");
}
