// The pattern that names a head: heads that do exactly one thing on the sequences of a task, and heads that
// only seem to.
#include "thimble/inspect/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/train/dataset.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;
using Weights = std::vector<double>;

// A sequence of a task with the keys that the task names.
struct TaskSequence {
  Tokens queries, keys;  // tokens: the same sequence, or with cross-attention target and source
  std::vector<Alignment> alignments, candidates;
};

struct Setting {
  std::string task;
  Layout layout;
  bool causal = false;
};

constexpr std::int64_t kSequences = 300;

TaskConfig config_of(const std::string& task) {
  TaskConfig config{.name = task, .symbols = 12, .length = 10};
  if (task == "associative_recall") config.length = 20;
  if (task == "dyck_match") config.length = 16;
  if (task == "induction") config.symbols = 64;  // few tokens occur twice in a round
  if (task == "sort" || task == "histogram") config.symbols = 6;
  return config;
}

// A head: the unnormalized weights of query i on the visible keys.
using Head = std::function<void(const TaskSequence&, std::int64_t i, std::span<double> row)>;

class TaskHeads {
 public:
  explicit TaskHeads(const Setting& setting)
      : setting_(setting), data_(config_of(setting.task), {.train = 0}, setting.layout, 5) {
    for (const Split split : {Split::test, Split::varied})
      for (std::int64_t i = 0; i < kSequences; ++i) sequences_[split].push_back(sequence(split, i));
  }

  std::span<const std::string_view> kinds() const { return data_.task().kinds; }
  std::size_t summed_kinds() const { return kinds().size() - data_.task().other_kinds; }
  const std::vector<TaskSequence>& sequences(Split split) const { return sequences_.at(split); }

  FoundPattern pattern(const Head& head) const {
    std::vector<HeadScore> scores = this->scores(Split::test, head, {});
    set_varied(scores, this->scores(Split::varied, head, scores));
    return find_pattern(scores);
  }

  std::int64_t visible(const TaskSequence& s, std::int64_t i) const {
    return setting_.causal ? i + 1 : std::ssize(s.keys);
  }

 private:
  bool cross() const { return setting_.layout == Layout::seq2seq; }

  TaskSequence sequence(Split split, std::int64_t i) const {
    Example e;
    data_.example(split, i, e);
    TaskSequence s{.queries = cross() ? Tokens(e.target.size() + 1) : e.input,
                   .keys = e.input,
                   .alignments = data_.alignments(e),
                   .candidates = data_.candidates(e)};
    return s;
  }

  ScoreTargets targets(const TaskSequence& s) const {
    const ScoreTargets::TaskTargets named{s.alignments, s.candidates, kinds().size(),
                                          data_.task().other_kinds};
    return cross() ? ScoreTargets::cross(std::ssize(s.queries), s.keys, named)
                   : ScoreTargets(s.keys, setting_.causal, named);
  }

  std::vector<HeadScore> scores(Split split, const Head& head, std::span<const HeadScore> like) const {
    const std::int64_t rows = data_.length(), columns = cross() ? data_.source_length() : rows;
    TargetCounts counts;
    for (const TaskSequence& s : sequences(split)) counts.add(targets(s));
    HeadScorer scorer = cross() ? HeadScorer::cross(rows, columns) : HeadScorer(rows, setting_.causal);
    for (const TaskSequence& s : sequences(split)) {
      Weights weights(static_cast<std::size_t>(rows * columns), 0);
      for (std::int64_t i = 0; i < std::ssize(s.queries); ++i) {
        const auto row = std::span(weights).subspan(static_cast<std::size_t>(i * columns),
                                                    static_cast<std::size_t>(visible(s, i)));
        head(s, i, row);
        const double sum = std::accumulate(row.begin(), row.end(), 0.0);
        for (double& w : row) w = sum > 0 ? w / sum : 1 / static_cast<double>(row.size());
      }
      scorer.add(targets(s), weights, &counts);
    }
    return scorer.scores(kinds(), like);
  }

  Setting setting_;
  Dataset data_;
  std::map<Split, std::vector<TaskSequence>> sequences_;
};

void add_keys(const std::vector<Alignment>& from, std::int64_t i, std::int32_t kind, std::span<double> row) {
  for (const auto& [query, key, of] : from)
    if (query == i && (kind < 0 || of == kind) && key < std::ssize(row))
      row[static_cast<std::size_t>(key)] = 1;
}

// Attends to the right keys, of one kind or of all kinds that are summed; elsewhere to all keys.
Head right(std::int32_t kind) {
  return [kind](const TaskSequence& s, std::int64_t i, std::span<double> row) {
    add_keys(s.alignments, i, kind, row);
  };
}

// Attends to all candidates alike.
const Head kAnyCandidate = [](const TaskSequence& s, std::int64_t i, std::span<double> row) {
  add_keys(s.candidates, i, -1, row);
};

// Attends to where the right keys are on average over the test sequences of equal size, whatever the tokens.
Head follows_positions(const TaskHeads& task) {
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::pair<std::int64_t, std::int64_t>, double>>
      cells;
  for (const TaskSequence& s : task.sequences(Split::test))
    for (const auto& [query, key, kind] : s.alignments)
      cells[{s.queries.size(), s.keys.size()}][{query, key}] += 1;
  return [cells](const TaskSequence& s, std::int64_t i, std::span<double> row) {
    const auto found = cells.find({s.queries.size(), s.keys.size()});
    if (found == cells.end()) return;
    for (const auto& [cell, count] : found->second)
      if (cell.first == i && cell.second < std::ssize(row))
        row[static_cast<std::size_t>(cell.second)] += count;
  };
}

// Attends to the most frequent right distance.
Head follows_distance(const TaskHeads& task) {
  std::map<std::int64_t, int> counts;
  for (const TaskSequence& s : task.sequences(Split::test))
    for (const auto& [query, key, kind] : s.alignments) ++counts[key - query];
  const std::int64_t distance =
      std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; })->first;
  return [distance](const TaskSequence&, std::int64_t i, std::span<double> row) {
    if (i + distance >= 0 && i + distance < std::ssize(row)) row[static_cast<std::size_t>(i + distance)] = 1;
  };
}

const std::vector<Setting> kSettings = {{"associative_recall", Layout::position},
                                        {"coreference", Layout::position},
                                        {"dates", Layout::seq2seq},
                                        {"dyck_match", Layout::position},
                                        {"dyck_match", Layout::position, true},
                                        {"histogram", Layout::position},
                                        {"induction", Layout::position, true},
                                        {"relations", Layout::position},
                                        {"sort", Layout::position},
                                        {"translation", Layout::seq2seq}};

// Names of patterns of content.
bool is_content(const FoundPattern& found) {
  return std::ranges::any_of(kScoreTable, [&](const ScoreInfo& score) {
    return score.content && found.name.starts_with(score.label);
  });
}

std::vector<HeadScore> scores_at_chance() {
  std::vector<HeadScore> scores = HeadScorer(4, false).scores();
  for (HeadScore& s : scores) {
    s = {.name = s.name, .value = 0.1, .chance = 0.1, .attainable = 1, .eligible = 500};
    if (s.name == "absolute_position") s.at = 2;
  }
  return scores;
}

}  // namespace

TEST_CASE("a head on the right keys is named after content, by kind where there are several", "[inspect]") {
  const std::map<std::string, std::string> special = {
      {"associative_recall", "induction"}, {"induction", "induction"}, {"histogram", "same token"}};
  for (const Setting& setting : kSettings) {
    const TaskHeads task(setting);
    const FoundPattern all = task.pattern(right(task.summed_kinds() > 1 ? -1 : 0));
    INFO(setting.task << ": " << all.name << ", " << all.numbers);
    const auto found = special.find(setting.task);
    const bool has_others = task.summed_kinds() < task.kinds().size();
    CHECK((all.name == (has_others ? "task target (referent)" : "task target") ||
           (found != special.end() && all.name == found->second)));
    for (std::size_t kind = 0; task.summed_kinds() > 1 && kind < task.kinds().size(); ++kind) {
      const FoundPattern one = task.pattern(right(static_cast<std::int32_t>(kind)));
      INFO(one.name << ", " << one.numbers);
      CHECK(one.name == fmt::format("task target ({})", task.kinds()[kind]));
    }
  }
}

TEST_CASE("a head that finds the class and not the member has no pattern of content", "[inspect]") {
  for (const Setting& setting : kSettings) {
    if (setting.task == "histogram" || setting.task == "sort") continue;  // all keys are candidates
    const FoundPattern found = TaskHeads(setting).pattern(kAnyCandidate);
    INFO(setting.task << ": " << found.name << ", " << found.numbers);
    CHECK_FALSE(is_content(found));
  }
}

TEST_CASE("a head that follows positions or a distance has no pattern of content", "[inspect]") {
  for (const Setting& setting : kSettings) {
    const TaskHeads task(setting);
    for (const Head& head : {follows_positions(task), follows_distance(task)}) {
      const FoundPattern found = task.pattern(head);
      INFO(setting.task << ": " << found.name << ", " << found.numbers);
      CHECK_FALSE(is_content(found));
    }
  }
  CHECK(TaskHeads({"induction", Layout::position, true})
            .pattern(follows_distance(TaskHeads({"induction", Layout::position, true})))
            .name == "offset -9");
}

TEST_CASE("a pattern of positions needs some of its strength on varied examples", "[inspect]") {
  std::vector<HeadScore> scores = scores_at_chance();
  HeadScore& mirror = *std::ranges::find(scores, "mirror", &HeadScore::name);
  const auto name = [&](double usual, double varied) {
    mirror.value = usual;
    mirror.varied = {.value = varied, .chance = 0.1, .matched = 0.1, .attainable = 1, .eligible = 500};
    return find_pattern(scores).name;
  };
  // Strengths are (value - 0.1) / 0.9: at least half of that on the usual examples.
  CHECK(name(0.91, 0.51) == "mirror");
  CHECK(name(0.91, 0.50).empty());
  CHECK(name(0.37, 0.24) == "mirror");
  CHECK(name(0.37, 0.23).empty());
}

TEST_CASE("keys that the queries never part from a position are the position", "[inspect]") {
  std::vector<HeadScore> scores = scores_at_chance();
  const auto set = [&](std::string_view name, double value, std::int64_t at) {
    HeadScore& score = *std::ranges::find(scores, name, &HeadScore::name);
    score.value = value;
    score.at = at;
  };
  set("mirror", 0.9, 0);
  CHECK(find_pattern(scores).score == "mirror");
  set("absolute_position", 0.89, 0);
  CHECK(find_pattern(scores).score == "mirror");
  set("absolute_position", 0.9, 0);
  CHECK(find_pattern(scores).name == "position 0");
  set("previous_token", 0.9, 0);  // of which the position after is no better description
  CHECK(find_pattern(scores).score == "absolute_position");
}

TEST_CASE("mixtures are named after their larger part", "[inspect]") {
  const TaskHeads task({"induction", Layout::position, true});
  const Head distance = follows_distance(task);
  const auto mixture = [&](double share) {
    return task.pattern([=](const TaskSequence& s, std::int64_t i, std::span<double> row) {
      Weights other(row.size());
      right(0)(s, i, row);
      distance(s, i, other);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = share * row[j] + (1 - share) * other[j];
    });
  };
  CHECK(mixture(0.4).name == "offset -9");
  CHECK(is_content(mixture(0.7)));
  for (const double leak : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6}) {
    CHECK(mixture(leak).name == "offset -9");
    CHECK(is_content(mixture(1 - leak)));
  }
}

TEST_CASE("the nearest opening bracket is not the one that a bracket closes", "[inspect]") {
  for (const bool causal : {false, true}) {
    const FoundPattern found = TaskHeads({"dyck_match", Layout::position, causal})
                                   .pattern([](const TaskSequence& s, std::int64_t i, std::span<double> row) {
                                     for (std::int64_t j = i - 1; j >= 0; --j) {
                                       if (s.keys[static_cast<std::size_t>(j)] == 12) continue;
                                       row[static_cast<std::size_t>(j)] = 1;
                                       return;
                                     }
                                   });
    INFO(found.name << ", " << found.numbers);
    CHECK_FALSE(is_content(found));
  }
}

TEST_CASE("without varied examples there are patterns of positions, but none of content", "[inspect]") {
  std::vector<HeadScore> scores = scores_at_chance();
  const auto score = [&](std::string_view name) -> HeadScore& {
    return *std::ranges::find(scores, name, &HeadScore::name);
  };
  CHECK(find_pattern(scores).name.empty());
  score("induction").value = 0.9;
  score("induction").same_class = 0.1;
  CHECK(find_pattern(scores).name.empty());
  score("induction").varied = {.value = 0.8, .chance = 0.1, .matched = 0.2, .attainable = 1, .eligible = 300};
  CHECK(find_pattern(scores).name == "induction");
  CHECK(find_pattern(scores).eligible == 300);
  CHECK(
      find_pattern(scores).numbers ==
      "90 % of its attention (chance 10 %, matched 10 %), 80 % where position and content part (matched 20 %)");
  CHECK(find_pattern(scores, 301).name.empty());
  score("induction").varied->value = 0.324;  // strength below 0.25
  CHECK(find_pattern(scores).name.empty());
}

TEST_CASE("a pattern has twice the odds of matched chance", "[inspect]") {
  std::vector<HeadScore> scores = scores_at_chance();
  HeadScore& induction = *std::ranges::find(scores, "induction", &HeadScore::name);
  const auto found = [&] { return !find_pattern(scores).name.empty(); };
  induction.value = 0.8;  // odds of 4
  induction.varied = {.value = 0.8, .chance = 0.1, .matched = 0.1, .attainable = 1, .eligible = 300};
  for (double* const baseline : {&induction.same_class, &induction.varied->matched}) {
    induction.same_class = induction.varied->matched = 0.1;
    *baseline = 0.66;
    CHECK(found());
    *baseline = 0.67;
    CHECK_FALSE(found());
  }
  // Of the usual examples, other positions prove nothing.
  induction.same_class = induction.varied->matched = 0.1;
  induction.same_positions = 0.8;
  CHECK(found());
  induction.attainable = 0.8;  // a perfect head has infinite odds
  induction.same_class = 0.79;
  CHECK(found());

  scores = scores_at_chance();
  HeadScore& position = *std::ranges::find(scores, "absolute_position", &HeadScore::name);
  position.value = 0.5;
  CHECK(find_pattern(scores).name == "position 2");
  CHECK(find_pattern(scores).numbers == "50 % of its attention (chance 10 %)");
  position.varied = {.value = 0.5, .chance = 0.1, .matched = 0.33, .attainable = 1, .eligible = 300};
  CHECK(find_pattern(scores).name == "position 2");
  position.varied->matched = 0.34;
  CHECK_FALSE(found());
}
