#include "thimble/train/listing.h"

#include "catch.h"
#include "small_rows.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/data/task_page.h"

using namespace thimble;
using namespace thimble::rows;

namespace {

const Names kNames = {"a", "bcd", "e"};

// The longest line of a text.
std::size_t widest(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    widest = std::max(widest, end - start);
  return widest;
}

}  // namespace

TEST_CASE("sequences of training come as the steps see them, at most those of an epoch", "[data]") {
  for (const std::int64_t train : {100, 0}) {  // 100: three steps, ten sequences left out; 0: without end
    const Dataset data =
        dataset({.name = "copy", .symbols = 4, .length = 6, .min_length = 2}, Layout::position, train);
    const auto sequences = first_sequences(data, Split::train, 200, 30);
    REQUIRE(sequences.size() == (train == 0 ? 200 : 90));
    for (std::int64_t i = 0; i < std::ssize(sequences); ++i) {
      const Sequence& s = sequences[static_cast<std::size_t>(i)];
      const Batch batch = step(data, i / 30, 30, 0, 30);
      const auto length = static_cast<std::size_t>(batch.lengths[static_cast<std::size_t>(i % 30)]);
      Tokens tokens = row(batch.tokens, i % 30, 6), labels = row(batch.labels, i % 30, 6);
      tokens.resize(length);
      labels.resize(length);
      CHECK(s.tokens == tokens);
      CHECK(s.labels == labels);
      Example e;
      data.example(Split::train, s.index, e);
      CHECK(s.tokens == e.input);
      CHECK(s.labels == e.target);
    }
  }
}

TEST_CASE("sequences of the other splits come by index", "[data]") {
  const Dataset data = dataset();
  for (const Split split : {Split::validation, Split::test}) {
    const auto sequences = first_sequences(data, split, 40, 30);
    for (std::int64_t i = 0; i < 40; ++i) {
      const Sequence& s = sequences[static_cast<std::size_t>(i)];
      Example e;
      data.example(split, i, e);
      CHECK(s.index == i);
      CHECK(s.tokens == e.input);
      CHECK(s.labels == e.target);
    }
  }
  CHECK(first_sequences(data, Split::validation, 9999, 30).size() == 40);
}

TEST_CASE("sequences are laid out as the model reads them", "[data]") {
  const auto next =
      first_sequences(dataset({.name = "sort", .symbols = 9, .length = 4}, Layout::next), Split::test, 5, 1);
  for (const Sequence& s : next) {
    CHECK(s.tokens.size() == 7);
    CHECK(Tokens(s.labels.begin(), s.labels.begin() + 3) == Tokens(3, kIgnore));
    CHECK(Tokens(s.labels.begin() + 3, s.labels.end() - 1) == Tokens(s.tokens.begin() + 4, s.tokens.end()));
  }
  const auto one =
      first_sequences(dataset({.name = "parity", .length = 9}, Layout::sequence), Split::test, 5, 1);
  for (const Sequence& s : one) {
    CHECK(s.tokens.size() == 9);
    CHECK(s.labels.size() == 1);
  }
}

TEST_CASE("the usual layout goes by the sizes", "[data]") {
  CHECK(usual_layout({4, 4}) == Layout::position);
  CHECK(usual_layout({4, 1}) == Layout::sequence);
  CHECK(usual_layout({4, 3}) == Layout::next);
  CHECK(usual_layout({3, 4}) == Layout::next);
}

TEST_CASE("answers stand below what they answer", "[data]") {
  CHECK(token_text(kNames, Tokens{0, kIgnore, 1}) == "a . bcd");
  CHECK(example_text(kNames, Tokens{0, 1, 0}, Tokens{1, kIgnore, 2}, 80) ==
        "input   a   bcd a\n"
        "answer  bcd .   e\n");
  CHECK(example_text(kNames, Tokens{0, 1, 0}, Tokens{2}, 80) ==
        "input   a bcd a\n"
        "answer  e\n");
  CHECK(example_text(kNames, Tokens{0, 1, 0, 2}, Tokens{1, kIgnore, 2, 0}, 15) ==
        "input   a   bcd\n"
        "answer  bcd .\n"
        "input   a e\n"
        "answer  e a\n");
  CHECK(example_text(kNames, Tokens{1, 1}, Tokens{1}, 1) == "input   bcd\ninput   bcd\nanswer  bcd\n");
}

TEST_CASE("a long vocabulary is shortened in the middle", "[data]") {
  CHECK(vocabulary_text(kNames, 80) == "3 tokens: a bcd e");
  CHECK(vocabulary_text({"x"}, 80) == "1 token: x");
  const Names many = tasks::number_tokens({.symbols = 1000});
  const std::string text = vocabulary_text(many, 40);
  CHECK(text == "1000 tokens: 0 1 2 3 ... 996 997 998 999");
  CHECK(text.size() == 40);
}

TEST_CASE("positions that an answer depends on are listed as ranges", "[data]") {
  const TaskConfig config{.name = "histogram", .symbols = 2, .length = 7};
  const Example e{.input = {0, 0, 0, 1, 0, 1, 1}, .target = {5, 5, 5, 4, 5, 4, kIgnore}};
  const std::string zero = "0-2 4\n", one = "3 5-6\n";
  CHECK(relevant_text(config, e, 80) == "    0  4        " + zero + "    1  4        " + zero +
                                            "    2  4        " + zero + "    3  3        " + one +
                                            "    4  4        " + zero + "    5  3        " + one);
  Example alternating{.input = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, .target = {}};
  alternating.target.assign(15, kIgnore);
  alternating.target[0] = 3;
  CHECK(relevant_text(config, alternating, 32) == "    0  2        0 2 4 6 8 10 12\n                14\n");
  CHECK(relevant_text({.name = "induction", .length = 2}, {.input = {7, 8, 7}, .target = {8, 7, 8}}, 80) ==
        "    0  8        none\n    1  7        none\n    2  8        1\n");
  CHECK(json_text(relevant_json(config, e)) ==
        "[[0,1,2,4],[0,1,2,4],[0,1,2,4],[3,5,6],[0,1,2,4],[3,5,6],[]]");
}

TEST_CASE("the page of every task is complete and 80 columns wide", "[data]") {
  for (const std::string_view name : task_names()) {
    const SourcePointer source = usual(name);
    const TaskConfig& config = source->config();
    INFO(name);
    const Json keys = {{"length", 16}, {"symbols", 10}};
    const TaskPage page = task_page(source, keys, 42, 2);
    CHECK(widest(page.text) <= 80);
    const Task& task = find_task(name);
    for (const std::string& part :
         {std::string(name) + ": " + std::string(task.summary),
          std::string("keys         length=16, symbols=10"),
          "vocabulary   " + std::to_string(source->tokens().size()) + " token",
          fmt::format("chance       {:.2f} %", 100 * source->chance()), std::string("lowest loss  "),
          std::string("\ninput   "), std::string("\nanswer  ")})
      CHECK_THAT(page.text, ContainsSubstring(part));
    CHECK(page.json["definition"] == task.definition);
    CHECK(page.json["keys"] == keys);
    CHECK(page.json["chance"] == source->chance());
    CHECK(page.json["floor"].is_null() == !source->floor());
    REQUIRE(page.json["examples"].size() == 2);
    const auto& example = page.json["examples"][0];
    const Tokens input = example["input"], target = example["target"];
    CHECK(example["input_text"] == token_text(source->tokens(), input, config.input_tokens()));
    CHECK(example["target_text"] == token_text(source->tokens(), target, config.target_tokens()));
    CHECK(example["relevant"] == relevant_json(config, {input, target}));
  }
}

TEST_CASE("the page of a file states the output that suits all rows", "[data]") {
  const auto per = [](std::string_view target_of_even, std::string_view target_of_odd) {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += fmt::format("{} a\t{}\n", i, i % 2 == 0 ? target_of_even : target_of_odd);
    return task_page(table_of(text), {}, 42, 0).json["per"].get<std::string>();
  };
  CHECK(per("b", "c") == "sequence");
  CHECK(per("b c", "_ c") == "position");
  CHECK(per("b", "b c") == "next");
  CHECK_THROWS_WITH(per("b", "_ c"), ContainsSubstring("t.tsv:1: 1 answer for 2 tokens"));
  CHECK(task_page(usual("reverse"), {}, 42, 0).json["per"] == "position");
}
