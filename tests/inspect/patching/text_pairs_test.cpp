// Pairs of the user's own texts: labels are the model's answers, in every kind of model.
#include <fstream>

#include "catch.h"
#include "inspect/patching/text_pairs.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

std::vector<std::int32_t> answers_to(const ModelSource& source, const std::string& text) {
  return trace_input(source, text).predictions;
}

}  // namespace

TEST_CASE("labels of own texts are the answers that trace shows", "[inspect]") {
  for (const Config& config : {small_config(), sequence_config(), writing_config()}) {
    const Saved saved(config);
    Evaluator evaluator(config, *saved.source.open());
    const std::string clean = "1 0 1 1";
    std::string corrupted;  // one that is answered by as many tokens
    for (const char* text : {"1 0 0 1", "0 0 1 1", "1 1 1 1", "0 0 0 0", "1 0 1 0"})
      if (answers_to(saved.source, text).size() == answers_to(saved.source, clean).size()) corrupted = text;
    for (const PairBatch& batch :
         text_pairs(evaluator, saved.source, std::vector<TextPair>{{clean, corrupted}})) {
      CHECK(batch.clean.row_labels == answers_to(saved.source, clean));
      CHECK(batch.corrupted.row_labels == answers_to(saved.source, corrupted));
      CHECK(batch.clean.rows.size() == batch.clean.row_labels.size());
    }
    const PatchingReport report = patch_pairs(saved.source, {.texts = {{clean, corrupted}}});
    CHECK(report.inputs.text() == "1 pair of your own");
    CHECK(report.clean == std::vector<std::string>{"1", "0", "1", "1"});
  }
}

TEST_CASE("answers at chosen positions count, and of a causal task the last one", "[inspect]") {
  Config config = small_config();
  const Saved saved(config);
  Evaluator evaluator(config, *saved.source.open());
  const std::vector<std::int32_t> all = answers_to(saved.source, "1 2 0");
  const auto batch = [&](const TextPair& pair) {
    return text_pairs(evaluator, saved.source, std::vector<TextPair>{pair})[0].clean;
  };
  CHECK(batch({"1 2 0", "2 2 0", {2, 0}}).rows == std::vector<std::int32_t>{0, 2});
  CHECK(batch({"1 2 0", "2 2 0", {2, 0}}).row_labels == std::vector<std::int32_t>{all[0], all[2]});
  CHECK_THROWS_WITH(batch({"1 2 0", "2 2 0", {3}, "FILE:7: "}),
                    Equals("FILE:7: positions: 3: must be below 3, as they count from 0"));
  CHECK_THROWS_WITH(batch({"1 2 0", "2 2"}),
                    Equals("patching: the inputs have lengths 3 and 2; choose two of equal length"));
  CHECK_THROWS_WITH(batch({"1 2 x", "2 2 0", {}, "FILE:7: "}), StartsWith("FILE:7: input: "));

  config.task = {.name = "induction", .symbols = 5, .length = 6};
  config.model.attention.mask = Mask::causal;
  const Saved causal(config);
  Evaluator of_causal(config, *causal.source.open());
  CHECK(text_pairs(of_causal, causal.source, std::vector<TextPair>{{"1 2 0", "2 2 0"}})[0].clean.rows ==
        std::vector<std::int32_t>{2});
  const Saved one_answer(sequence_config());
  CHECK_THROWS_WITH(patch_pairs(one_answer.source, {.texts = {{"1 0", "0 0", {0}}}}),
                    ContainsSubstring("one answer a sequence"));
}

TEST_CASE("pairs are read from JSON Lines, with the line of what is wrong", "[inspect]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "pairs.jsonl";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_text_pairs(file);
  };
  const std::vector<TextPair> pairs = read(
      "{\"clean\": \"a b\", \"corrupted\": \"a c\"}\n\n{\"corrupted\": \"d\", \"clean\": \"e\", "
      "\"positions\": [0]}\r\n");
  REQUIRE(pairs.size() == 2);
  CHECK((pairs[0].clean == "a b" && pairs[0].corrupted == "a c" && pairs[0].positions.empty()));
  CHECK((pairs[1].clean == "e" && pairs[1].positions == std::vector<std::int64_t>{0}));
  CHECK(pairs[1].where.ends_with("pairs.jsonl:3: "));
  for (const char* line : {"[]", "{}", R"({"clean": "a"})", R"({"clean": "a", "corrupted": 1})",
                           R"({"clean": "a", "corrupted": "b", "positions": [-1]})",
                           R"({"clean": "a", "corrupted": "b", "positions": [1e99]})",
                           R"({"clean": "a", "corrupted": "b", "position": [1]})"})
    CHECK_THROWS_WITH(read(line), ContainsSubstring("pairs.jsonl:1: a line must be {\"clean\""));
  CHECK_THROWS_WITH(read("\n{"), ContainsSubstring("pairs.jsonl:2: "));
  CHECK_THROWS_WITH(read("\n"), ContainsSubstring("no pair"));
}
