// Byte models write any bytes: every text made of them is UTF-8, and JSON has the bytes themselves.
#include <random>

#include "catch.h"
#include "corpora.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"
#include "thimble/train/prediction.h"
#include "train/files/text/text.h"

using namespace thimble;

namespace {

bool is_utf8(const std::string& text) { return utf8_size(text) == text.size(); }

}  // namespace

TEST_CASE("texts of random bytes are UTF-8 wherever they are written", "[data][text]") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  Names names;
  tokenize(all, Tokenization::bytes, [&](std::string_view token) { names.push_back(shown_token(token)); });
  names.emplace_back(kUnknownToken);
  TaskConfig task{.name = "text"};
  task.text.tokens = Tokenization::bytes;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> ids(random() % 40 + 1);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % 256);
    std::string raw;
    for (const std::int32_t id : ids) raw += static_cast<char>(id);
    CHECK(token_text(names, ids, Tokenization::bytes) == valid_utf8(raw));
    CHECK(token_bytes(names, ids) == ids);
    CHECK(is_utf8(valid_utf8(raw)));
    ids[0] = 256;  // <unk>
    ids.back() = kIgnore;
    const Prediction prediction{.input = ids, .target = ids, .answer = ids};
    const std::string line = predictions_text(names, task, Split::test, {&prediction, 1});
    CHECK(is_utf8(line));
    CHECK(std::ranges::count(line, '\t') == 7);
    CHECK(std::ranges::count(line, '\n') == 1);
    CHECK(is_utf8(example_text(names, ids, ids, 80)));
    const Json json = parse_json(json_text(example_json(names, ids, ids, task)));
    CHECK(json["input_bytes"] == Json(token_bytes(names, ids)));
    CHECK(json["target_bytes"][0] == -1);
  }
  CHECK(token_bytes(names, std::vector<std::int32_t>{256, kIgnore, 65}) ==
        std::vector<std::int32_t>{-1, -1, 65});
}

TEST_CASE("a cell of predictions is unambiguous", "[data][text]") {
  const Names names{"a", "\\", "\u21E5", "\u23CE", "\u240D", "t"};
  TaskConfig task{.name = "text"};
  task.text.tokens = Tokenization::characters;
  const Prediction prediction{.input = {0, 1, 5}, .target = {2, 3, 4}, .answer = {1, 1}};
  CHECK_THAT(predictions_text(names, task, Split::test, {&prediction, 1}),
             StartsWith("test\ta\\\\t\t\\t\\n\\r\t\\\\\\\\\tfalse\t"));
}
