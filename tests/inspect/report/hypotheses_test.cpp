// Hypotheses on a hand-made induction head: the right one is confirmed, near misses are not.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/data/table/table.h"
#include "train/files/text/text.h"

using namespace thimble;

namespace {

constexpr std::size_t kInduction = 2;  // the head, of two layers of two

using Cells = std::vector<std::pair<std::int64_t, std::int64_t>>;
using Rule = std::function<Cells(const std::vector<std::int32_t>&)>;

// Returns the cells that are `ahead` keys after an earlier occurrence of the query's token, or of another one.
Cells after(const std::vector<std::int32_t>& x, std::int64_t ahead, bool same) {
  Cells cells;
  for (std::int64_t i = 0; i < std::ssize(x); ++i)
    for (std::int64_t j = 0; j + ahead <= i; ++j)
      if ((x[static_cast<std::size_t>(j)] == x[static_cast<std::size_t>(i)]) == same &&
          (same || (i + j) % 4 == 0))
        cells.emplace_back(i, j + ahead);
  return cells;
}

const Rule kSuccessor = [](const auto& x) { return after(x, 1, true); };

OpenConfig config_of_many() {
  OpenConfig config = hand_made::induction().config;
  config.data.test = 400;
  return config;
}

struct Rows {
  bool targets = true, varied = true;
};

// Returns a file of the task's sequences, in which each rule has a name.
std::string file_of(const OpenConfig& config, const std::vector<std::pair<std::string, Rule>>& rules,
                    Rows rows = {}) {
  const Dataset data = make_dataset(config);
  std::string text;
  Example e;
  for (const Split split : {Split::test, Split::varied})
    for (std::int64_t i = 0; i < (split == Split::test ? config.data.test : rows.varied ? 200 : 0); ++i) {
      data.example(split, i, e);
      Json row = {{"varied", split == Split::varied}};
      for (const std::int32_t id : e.input)
        row["input"].push_back(data.names()[static_cast<std::size_t>(id)]);
      for (const std::int32_t id : e.target)
        if (rows.targets)
          row["target"].push_back(id == kIgnore ? Json() : Json(data.names()[static_cast<std::size_t>(id)]));
      for (const auto& [name, rule] : rules)
        for (const auto& [query, key] : rule(e.input)) row["attends"].push_back({query, key, name});
      text += row.dump() + "\n";
    }
  return text;
}

InspectReport report_on(const hand_made::HandMade& made, const std::string& text) {
  const TemporaryDirectory directory;
  write_file(directory / "rows.jsonl", text);
  return inspect_weights(
      made.config, made.set_weights,
      {.sequences = 400, .examples = 0, .hypotheses = (directory / "rows.jsonl").string()});
}

std::string answers(const HeadReport& head) {
  std::string text;
  for (const HypothesisTest& test : head.hypotheses)
    text += test.answer == Confirmed::yes ? "y" : test.answer == Confirmed::no ? "n" : "o";
  return text;
}

}  // namespace

TEST_CASE("the right hypothesis is confirmed, and near misses are not", "[inspect]") {
  const OpenConfig config = config_of_many();
  std::map<std::size_t, std::vector<std::int32_t>> last;  // by length
  const InspectReport report =
      report_on(hand_made::induction(),
                file_of(config, {{"successor", kSuccessor},
                                 {"two after", [](const auto& x) { return after(x, 2, true); }},
                                 {"successor of another", [](const auto& x) { return after(x, 1, false); }},
                                 {"another sequence",
                                  [&](const auto& x) {
                                    const auto [before, is_new] = last.try_emplace(x.size(), x);
                                    const Cells cells = after(std::exchange(before->second, x), 1, true);
                                    return is_new ? Cells() : cells;
                                  }},
                                 {"anything", [](const auto& x) {
                                    Cells all;
                                    for (std::int64_t i = 0; i < std::ssize(x); ++i)
                                      for (std::int64_t j = 0; j <= i; ++j) all.emplace_back(i, j);
                                    return all;
                                  }}}));
  const HeadReport& head = report.heads[kInduction];
  for (const HypothesisTest& test : head.hypotheses) UNSCOPED_INFO(test.sentence);
  CHECK(answers(head) == "ynnnn");
  CHECK(head.hypotheses[0].name == "successor");
  CHECK(head.hypotheses[0].p < 1e-4);
  CHECK(head.hypotheses[0].cells->kept() > 0.95);
  CHECK(head.label.name == "successor");
  INFO(head.label.summary);
  CHECK(head.label.summary.starts_with("looks at the successor ("));
  CHECK(answers(report.heads[0])[0] == 'n');
  CHECK(report.heads[0].label.name != "successor");
  CHECK(to_json(report)["split"] == "rows.jsonl");
}

TEST_CASE("a hypothesis alone, without targets, and on shuffled rows", "[inspect]") {
  const OpenConfig config = config_of_many();
  const auto of = [&](Rows rows) {
    return report_on(hand_made::induction(), file_of(config, {{"successor", kSuccessor}}, rows));
  };
  CHECK(answers(of({}).heads[kInduction]) == "y");
  const InspectReport unlabeled = of({.targets = false});
  CHECK(answers(unlabeled.heads[kInduction]) == "o");
  CHECK(unlabeled.baseline.labels == 0);
  const Json json = to_json(unlabeled);
  for (const char* key : {"loss", "accuracy", "sequence_accuracy"}) CHECK(json["baseline"][key].is_null());
  CHECK(json["scale"]["at_chance"].is_null());
  CHECK(std::isnan(unlabeled.heads[0].effects.zero.loss_change));  // null in JSON
  CHECK(find_score(unlabeled.heads[kInduction].scores, "task_target").value > 0.9);
  // What followed a token is elsewhere in a shuffled row, which is no evidence against the head.
  const HeadReport shuffled = of({.varied = false}).heads[kInduction];
  CHECK(answers(shuffled) == "o");
  CHECK(shuffled.hypotheses[0].sentence.find("not confirmed on shuffled rows") != std::string::npos);
}

TEST_CASE("a hypothesis about positions needs no varied rows, and is refuted by those that differ",
          "[inspect]") {
  hand_made::HandMade made = hand_made::mirror();
  made.config.data.test = 400;
  const Rule mirror = [](const auto& x) {
    Cells cells;
    for (std::int64_t i = 0; i < std::ssize(x); ++i) cells.emplace_back(i, std::ssize(x) - 1 - i);
    return cells;
  };
  const Rule beside = [](const auto& x) {
    Cells cells;
    for (std::int64_t i = 1; i < std::ssize(x); ++i) cells.emplace_back(i, std::ssize(x) - i);
    return cells;
  };
  for (const bool varied : {false, true}) {
    const InspectReport report =
        report_on(made, file_of(made.config, {{"mirror", mirror}, {"beside", beside}}, {.varied = varied}));
    INFO(report.heads[0].hypotheses[0].sentence);
    CHECK(answers(report.heads[0]) == "yn");
  }
}

TEST_CASE("intervals of own rows rest on the most labels that a row has", "[inspect]") {
  const OpenConfig config = config_of_many();
  const std::string rows = file_of(config, {{"successor", kSuccessor}});
  std::string text;
  for (const std::string_view line : split_at('\n', rows)) {
    Json row = line.empty() ? Json() : Json::parse(line);
    for (std::size_t i = 2; i < row["target"].size(); ++i) row["target"][i] = nullptr;
    if (!line.empty()) text += row.dump() + "\n";
  }
  CHECK(report_on(hand_made::induction(), text).scale.bounds.most_labels == 2);
}

TEST_CASE("alignments of a shuffled row move along with its tokens", "[inspect]") {
  const std::string row =
      R"({"input": ["a", "b", "c", "d"], "target": [null, null, null, "x"], "attends": [[3, 0, "k"]]})";
  const DataText file{"t.jsonl", row + "\n"};
  const Table table({.main = file, .validation = file, .test = file});
  SampleRng rng(Random(1, Stream::data), 1, 3);
  int moved = 0;
  for (int i = 0; i < 50; ++i) {
    Example e;
    table.vary(rng, Layout::position, e);
    const auto [query, key, kind] = e.attends.at(0);
    CHECK(table.tokens()[static_cast<std::size_t>(e.input[static_cast<std::size_t>(query)])] == "d");
    CHECK(table.tokens()[static_cast<std::size_t>(e.input[static_cast<std::size_t>(key)])] == "a");
    CHECK(e.target[static_cast<std::size_t>(query)] != kIgnore);
    moved += query != 3 ? 1 : 0;
  }
  CHECK(moved > 20);
  for (int i = 0; i < 50; ++i) {  // an answer of the sequence is read where the query is
    Example e;
    table.vary(rng, Layout::sequence, e);
    const auto [query, key, kind] = e.attends.at(0);
    CHECK(query == std::ssize(e.input) - 1);
    CHECK(table.tokens()[static_cast<std::size_t>(e.input[static_cast<std::size_t>(query)])] == "d");
    CHECK(table.tokens()[static_cast<std::size_t>(e.input[static_cast<std::size_t>(key)])] == "a");
  }
  CHECK(table.kinds() == std::vector<std::string_view>{"k"});
}
