// The timeline of a run, read from metrics.jsonl, its events and its plot.
#include "thimble/inspect/timeline.h"

#include <cmath>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

using Values = std::vector<double>;

// Returns snapshots of one head at steps 0, 10, 20, ...; the loss falls from 5 by 0.1 per snapshot. Chance is
// 0.1 and attainable 0.9, so that the strength of 0.2 is 0.125.
std::vector<HeadSnapshot> steps_of(const std::map<std::string, Values>& scores) {
  std::vector<HeadSnapshot> steps(scores.begin()->second.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = static_cast<std::int64_t>(10 * i);
    steps[i].loss = 5 - 0.1 * static_cast<double>(i);
    steps[i].heads.push_back({.id = {1, 2}, .scores = {}});
    for (const auto& [name, values] : scores) {
      steps[i].heads[0].scores[name] = values[i];
      steps[i].chance[name] = 0.1;
      steps[i].attainable[name] = 0.9;
    }
  }
  return steps;
}

std::vector<std::string> sentences(const std::vector<HeadSnapshot>& steps) {
  std::vector<std::string> found;
  for (const HeadEvent& e : find_events(steps)) found.push_back(sentence(e));
  return found;
}

std::vector<std::string> sentences(const std::string& score, const Values& values) {
  return sentences(steps_of({{score, values}}));
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("a head that forms at once did so between two snapshots", "[inspect]") {
  const auto events = find_events(steps_of({{"induction", {0.1, 0.1, 0.11, 0.9, 0.9, 0.9}}}));
  REQUIRE(events.size() == 1);
  CHECK((events[0].id == HeadId{1, 2}));
  CHECK(events[0].score == "induction");
  CHECK(events[0].formed);
  CHECK(events[0].before == 20);
  CHECK(events[0].after == 30);
  CHECK_THAT(events[0].loss_before, WithinAbs(4.8, 1e-12));
  CHECK_THAT(events[0].loss_after, WithinAbs(4.7, 1e-12));
  CHECK(sentence(events[0]) ==
        "head 1.2 became an induction head between steps 20 and 30, when the loss fell from 4.8 to 4.7");
}

TEST_CASE("a pattern of content counts only if the trained head has it", "[inspect]") {
  const auto steps = steps_of({{"induction", {0.1, 0.1, 0.9, 0.9}}, {"offset", {0.1, 0.1, 0.9, 0.9}}});
  const auto score = [&](const std::vector<std::string_view>& patterns) {
    const auto events = find_events(steps, patterns);
    return events.empty() ? std::string() : events[0].score;
  };
  CHECK(score({}) == "induction");
  CHECK(score({"induction"}) == "induction");
  CHECK(score({"offset"}) == "offset");
  CHECK(score({""}) == "offset");  // patterns of positions need no varied examples
  CHECK(best_pattern(steps.back(), 0, std::vector<std::string_view>{"offset"}) == "offset");
  const std::vector<std::string_view> patterns = {"offset"};
  CHECK_THAT(draw(steps, true, 80, patterns), ContainsSubstring("offset"));
  CHECK_THAT(draw(steps, true, 80, patterns), !ContainsSubstring("induction"));
}

TEST_CASE("a head that forms slowly did so from a quarter to three quarters of the rise", "[inspect]") {
  // From 0.1 to 0.9: a quarter is 0.3, half 0.5, three quarters 0.7.
  CHECK(
      sentences("mirror", {0.1, 0.2, 0.29, 0.31, 0.45, 0.55, 0.69, 0.71, 0.8, 0.9}) ==
      Sentences{"head 1.2 became a mirror head between steps 20 and 70, when the loss fell from 4.8 to 4.3"});
  // A pattern at chance or at the start has not formed.
  const auto later = find_events(steps_of({{"mirror", {0.5, 0.4, 0.59, 0.61, 0.79, 0.81, 0.9}}}));
  REQUIRE(later.size() == 1);
  CHECK(later[0].before == 20);
  CHECK(later[0].after == 50);
}

TEST_CASE("a rise begins after the last value below half of it that counts", "[inspect]") {
  // A quarter is 0.3, half 0.5, three quarters 0.7.
  const auto between = [](const Values& values) {
    const auto events = find_events(steps_of({{"mirror", values}}));
    return events.size() == 1 ? std::pair(events[0].before / 10, events[0].after / 10)
                              : std::pair<std::int64_t, std::int64_t>();
  };
  using Steps = std::pair<std::int64_t, std::int64_t>;
  CHECK(between({0.1, 0.1, 0.9, 0.45, 0.9, 0.9}) == Steps(1, 4));  // it sank below half again
  CHECK(between({0.1, 0.1, 0.9, 0.55, 0.9, 0.9}) == Steps(1, 2));
  CHECK(between({0.1, 0.1, 0.4, 0.2, 0.6, 0.9}) == Steps(3, 5));
  // From 0.5, at the start, to 0.9: 0.6, 0.7 and 0.8.
  CHECK(between({0.5, 0.5, 0.9, 0.65, 0.9, 0.9}) == Steps(1, 4));
  CHECK(between({0.5, 0.5, 0.9, 0.75, 0.9, 0.9}) == Steps(1, 2));
}

TEST_CASE("a head that stays near chance, or near its start, has no event", "[inspect]") {
  CHECK(sentences("induction", {0.1, 0.1, 0.12, 0.15, 0.29}).empty());
  CHECK(sentences("induction", {0.0, 0.1, 0.12, 0.15, 0.29}).empty());
  CHECK(sentences("induction", {0.8, 0.8, 0.85, 0.89}).empty());
  CHECK(sentences("induction", {0.9, 0.1, 0.1, 0.1, 0.1}).empty());
  CHECK(sentences("induction", {0.1, 0.1, 0.12, 0.15, 0.31}).size() == 1);
}

TEST_CASE("the last rise of a score counts", "[inspect]") {
  const auto events = find_events(steps_of({{"induction", {0.1, 0.9, 0.1, 0.9, 0.1, 0.2, 0.9, 0.9}}}));
  REQUIRE(events.size() == 1);
  CHECK(events[0].before == 50);
  CHECK(events[0].after == 60);
  CHECK(sentences("induction", {0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1}).empty());
}

TEST_CASE("a head that gives up a pattern has two events", "[inspect]") {
  CHECK(
      sentences("previous_token", {0.1, 0.1, 0.8, 0.9, 0.85, 0.65, 0.6, 0.2, 0.15, 0.1}) ==
      Sentences{
          "head 1.2 became a previous-token head between steps 10 and 20, when the loss fell from 4.9 to 4.8",
          "head 1.2 stopped being a previous-token head between steps 40 and 70, when the loss fell from 4.6 to 4.3"});
  CHECK(sentences("previous_token", {0.1, 0.1, 0.9, 0.9, 0.1, 0.1}).empty());  // too short
}

TEST_CASE("one change of a head has one name", "[inspect]") {
  const Values rise{0.1, 0.1, 0.8, 0.8}, less{0.1, 0.1, 0.6, 0.6}, most{0.1, 0.1, 0.85, 0.85};
  const auto became = [](const std::map<std::string, Values>& scores) {
    std::vector<std::string> names;
    for (const HeadEvent& e : find_events(steps_of(scores))) names.push_back(e.score);
    return names;
  };
  CHECK(became({{"mirror", less}, {"previous_token", rise}}) == Sentences{"previous_token"});
  CHECK(became({{"mirror", rise}, {"previous_token", less}}) == Sentences{"mirror"});
  CHECK(became({{"same_token", rise}, {"duplicate_token", rise}}) == Sentences{"duplicate_token"});
  CHECK(became({{"induction", rise}, {"task_target", most}}) == Sentences{"induction"});
  CHECK(became({{"induction", less}, {"task_target", rise}}) == Sentences{"task_target"});
  // First one thing, then another.
  CHECK(became({{"mirror", {0.1, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1}},
                {"induction", {0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9}}}) ==
        Sentences{"mirror", "mirror", "induction"});
}

TEST_CASE("events are found for each head, from scores that are known at every step", "[inspect]") {
  auto steps = steps_of({{"induction", {0.1, 0.9, 0.9}}});
  for (HeadSnapshot& step : steps) step.heads.push_back({{3, 0}, step.heads[0].scores});
  CHECK(find_events(steps).size() == 2);
  CHECK(find_events(steps)[1].id.layer == 3);
  steps[1].heads[0].scores.clear();
  CHECK(find_events(steps).size() == 1);
  CHECK(find_events({steps[0]}).empty());
  CHECK(find_events({}).empty());
  for (HeadSnapshot& step : steps) step.chance.clear();
  CHECK(find_events(steps).empty());
}

TEST_CASE("a sentence reports a loss that rises, stays or is not finite", "[inspect]") {
  HeadEvent event{.id = {0, 3},
                  .score = "same_token",
                  .formed = false,
                  .before = 100,
                  .after = 112,
                  .loss_before = 1,
                  .loss_after = 0.021};
  const std::string what = "head 0.3 stopped being a same-token head between steps 100 and 112";
  CHECK(sentence(event) == what + ", when the loss fell from 1 to 0.021");
  event.loss_after = 1.25;
  CHECK(sentence(event) == what + ", when the loss rose from 1 to 1.2");
  event.loss_after = 1.001;
  CHECK(sentence(event) == what + ", when the loss stayed at 1");
  event.loss_after = std::nan("");
  CHECK(sentence(event) == what);
}

namespace {

const char* const kHeads =
    R"({"step":0,"split":"heads","loss":4.25,"sequences":99,"chance":{"mirror":0.25,"induction":null},)"
    R"("attainable":{"mirror":1,"induction":null},)"
    R"("heads":[{"layer":0,"head":0,"scores":{"mirror":0.5,"induction":null}},)"
    R"({"layer":0,"head":1,"scores":{"mirror":0.125,"induction":null}}],"seconds":0.1})";
const char* const kTrain =
    R"({"step":1,"split":"train","loss":4.5,"accuracy":0.5,"sequences":20,"seconds":0.2})";
const char* const kValidation =
    R"({"step":1,"split":"validation","loss":null,"accuracy":0.25,"seconds":0.2})";
const char* const kTest = R"({"step":1,"split":"test","loss":4.5,"accuracy":0.75,"seconds":0.2})";

// Returns the timeline of a run with these metrics.
Timeline timeline_of(const std::string& metrics) {
  const TemporaryDirectory run;
  write_file(run / "metrics.jsonl", metrics);
  return read_timeline(run.path());
}

std::string lines(std::initializer_list<std::string> all) {
  std::string text;
  for (const std::string& line : all) text += line + '\n';
  return text;
}

}  // namespace

TEST_CASE("a timeline is read from the metrics", "[inspect]") {
  const Timeline timeline = timeline_of(lines({kHeads, kTrain, kValidation, kTest}));
  REQUIRE(timeline.steps.size() == 1);
  CHECK(timeline.steps[0].step == 0);
  CHECK(timeline.steps[0].loss == 4.25);
  CHECK(timeline.steps[0].sequences == 99);
  CHECK(to_json(timeline)["timeline"][0]["sequences"] == 99);
  CHECK(to_json(timeline)["curves"][0]["sequences"] == 20);
  CHECK(timeline.steps[0].chance == ScoresByName{{"mirror", 0.25}});
  CHECK(timeline.steps[0].attainable == ScoresByName{{"mirror", 1}});
  REQUIRE(timeline.steps[0].heads.size() == 2);
  CHECK(timeline.steps[0].heads[1].id.head == 1);
  CHECK(timeline.steps[0].heads[1].scores == ScoresByName{{"mirror", 0.125}});
  REQUIRE(timeline.curves.size() == 2);
  CHECK((timeline.curves[0].split == "train" && timeline.curves[0].loss == 4.5));
  CHECK((timeline.curves[1].split == "validation" && std::isnan(timeline.curves[1].loss)));
  CHECK(timeline.curves[1].accuracy == 0.25);
  CHECK_FALSE(timeline.chance.has_value());
  const TemporaryDirectory none;
  CHECK(read_timeline(none.path()).steps.empty());
}

TEST_CASE("a head with an attention has a chance of its own, and the name of its attention", "[inspect]") {
  const std::string heads =
      R"({"step":0,"split":"heads","loss":4,"chance":{},"attainable":{},"heads":[{"layer":2,"head":1,)"
      R"("scores":{"mirror":0.5},"attention":"cross.0","chance":{"mirror":0.4},"attainable":{"mirror":1}}]})";
  const std::string later = std::string(R"({"step":1)") + heads.substr(heads.find(','));
  std::vector<HeadSnapshot> steps = timeline_of(lines({heads, later})).steps;
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].heads[0].attention == "cross.0");
  steps[1].step = 10;
  steps[1].heads[0].scores["mirror"] = 0.9;
  CHECK(sentences(steps) ==
        Sentences{"head cross.0.1 became a mirror head between steps 0 and 10, when the loss stayed at 4"});
  CHECK_THAT(draw(steps, true), ContainsSubstring("\ncross.0.1 mirror "));
  steps[1].heads[0].chance = {{"mirror", 0.88}};  // now it is near chance
  CHECK(sentences(steps).empty());
}

TEST_CASE("an incomplete last line is ignored, any other damage is left out and said", "[inspect]") {
  const std::string train = kTrain, cut = train.substr(0, 40),
                    later = R"({"step":9)" + train.substr(train.find(','));
  CHECK(timeline_of(train + "\n" + cut).curves.size() == 1);
  CHECK(timeline_of(train + "\n" + later).curves.size() == 2);
  CHECK(timeline_of("").curves.empty());
  const Timeline drawn = timeline_of(lines({kTrain, R"({"step":5,"split":"samples","texts":["ab","c"]})",
                                            R"({"step":6,"split":"samples","texts":3})"}));
  REQUIRE(drawn.samples.size() == 1);
  CHECK((drawn.samples[0].step == 5 && drawn.samples[0].texts == std::vector<std::string>{"ab", "c"}));
  CHECK(to_json(drawn)["samples"] == Json::parse(R"([{"step":5,"texts":["ab","c"]}])"));
  CHECK_FALSE(to_json(timeline_of("")).contains("samples"));
  for (const std::string& damaged :
       {cut, std::string("[]"), std::string("{\"step\":1}"), std::string("\0\0", 2)}) {
    CAPTURE(damaged);
    const Timeline timeline = timeline_of(lines({kTrain, damaged, later}));
    CHECK(timeline.curves.size() == 2);
    REQUIRE(timeline.remarks.size() == 1);
    CHECK_THAT(timeline.remarks[0],
               EndsWith("metrics.jsonl: line 2 is no object of step and split, so it is left out"));
    CHECK(to_json(timeline)["remarks"].size() == 1);
  }
  for (const char* damaged :
       {R"({"step":1,"split":"train","loss":"x","accuracy":0})", R"({"step":1,"split":"heads","loss":1})"})
    CHECK(timeline_of(lines({kTrain, damaged, later})).curves.size() == 2);
}

TEST_CASE("a long run keeps some points of each split, and the last", "[inspect]") {
  std::string metrics;
  for (int step = 1; step <= 2500; ++step)
    for (const char* split : {"train", "validation"})
      metrics += json_text(Json{{"step", step}, {"split", split}, {"loss", 1.5}, {"accuracy", 0.5}}) + "\n";
  const Timeline timeline = timeline_of(metrics);
  for (const char* split : {"train", "validation"}) {
    std::vector<std::int64_t> steps;
    for (const CurvePoint& p : timeline.curves)
      if (p.split == split) steps.push_back(p.step);
    REQUIRE(steps.size() == 626);  // 1, 5, 9, ..., 2497, and 2500
    for (std::size_t i = 0; i < 625; ++i) CHECK(steps[i] == static_cast<std::int64_t>(4 * i + 1));
    CHECK(steps.back() == 2500);
  }
}

TEST_CASE("the timeline as JSON", "[inspect]") {
  Timeline timeline{steps_of({{"induction", {0.1, 0.9, 0.9}}}), {{10, "validation", 2.5, 0.75}}};
  const auto json = to_json(timeline);
  REQUIRE(json["timeline"].size() == 3);
  CHECK(
      json_text(json["timeline"][1]) ==
      R"({"step":10,"loss":4.9,"sequences":null,"labels":null,"heads":[{"layer":1,"head":2,"name":"1.2","scores":{"induction":0.9},"eligible":{}}]})");
  CHECK(json["events"][0] == sentence(find_events(timeline.steps)[0]));
  CHECK(json_text(json["curves"]) ==
        R"([{"step":10,"split":"validation","loss":2.5,"accuracy":0.75,"sequences":null,"labels":null}])");
  CHECK(json_text(to_json(Timeline{})) == R"({"timeline":[],"events":[],"curves":[]})");
  const std::string known = R"({"step":1,"split":"validation","loss":2,"accuracy":0.5,"chance":0.25,)"
                            R"("lowest_possible_loss":0.125})";
  const auto levels = to_json(timeline_of(lines({kTrain, known})));
  CHECK(levels["chance"] == 0.25);
  CHECK(levels["lowest_possible_loss"] == 0.125);
}

TEST_CASE("scores over time are drawn as bars", "[inspect]") {
  auto steps = steps_of({{"induction", {0.1, 0.1, 0.5, 0.9, 1.0}}, {"mirror", {0.1, 0.2, 0.1, 0.2, 0.1}}});
  for (std::size_t i = 1; i < steps.size(); ++i) steps[i].step = i == 4 ? 12 : static_cast<std::int64_t>(i);
  steps[1].loss = std::nan("");
  CHECK(draw(steps, true) ==
        "step          0 2 12\n"
        "loss          # ###     4.6\n"
        "1.2 induction __=##       1\n");
  CHECK(draw({}, true).empty());
}
