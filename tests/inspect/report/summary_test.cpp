// What a head does, in plain words: every pattern, verdict and result of the test of its cells.
#include "inspect/report/summary.h"

#include <string>
#include <vector>

#include "catch.h"
#include "inspect/made_effect.h"

using namespace thimble;

namespace {

constexpr Effect kNeeded = made_effect(0.4, -0.63, {0.3, 0.5}, {-0.65, -0.61});
const HeadVerdict kImportant = {.verdict = Verdict::important};

// Returns the summary of a head with 83 % of its attention on a pattern, or 51 % on varied examples, where simpler heads have 22 %.
std::string summary_of(FoundPattern pattern, const HeadVerdict& effects = kImportant,
                       std::optional<Carried> carried = Carried::yes, const Effect& zero = kNeeded) {
  std::vector<HeadScore> scores = HeadScorer(4, false).scores();
  HeadScore score{.name = pattern.score, .value = 0.83, .chance = 0.12, .attainable = 1, .eligible = 500};
  score.kind = pattern.kind;
  score.varied = {.value = 0.51, .chance = 0.1, .matched = 0.22, .attainable = 1, .eligible = 500};
  scores.insert(scores.begin(), score);
  if (!carried) return summarize(scores, zero, effects, std::nullopt);
  pattern.name = "a pattern";
  CellEffect cells;
  cells.pattern = pattern;
  cells.carried = *carried;
  return summarize(scores, zero, effects, cells);
}

FoundPattern pattern(std::string_view score, std::optional<std::int64_t> at = {},
                     std::string_view kind = {}) {
  FoundPattern out;
  out.score = score;
  out.at = at;
  out.kind = kind;
  return out;
}

}  // namespace

TEST_CASE("a summary says in plain words what each pattern is", "[inspect]") {
  const std::string
      positions =
          " (83 % of its attention, 51 % where position and content part; uniform attention 12 %); without it 63 of 100 answers are lost",
      content = " (51 % of its attention; simpler heads 22 %); without it 63 of 100 answers are lost";
  CHECK(summary_of(pattern("previous_token")) == "looks at the token before" + positions);
  CHECK(summary_of(pattern("next_token")) == "looks at the token after" + positions);
  CHECK(summary_of(pattern("self")) == "looks at its own position" + positions);
  CHECK(summary_of(pattern("mirror")) == "looks as far from the end as it is from the start" + positions);
  CHECK(summary_of(pattern("offset", -1)) == "looks 1 position back" + positions);
  CHECK(summary_of(pattern("offset", 3)) == "looks 3 positions ahead" + positions);
  CHECK(summary_of(pattern("absolute_position", 2)) == "looks at position 2" + positions);
  CHECK(summary_of(pattern("same_token")) == "looks for the same token elsewhere" + content);
  CHECK(summary_of(pattern("duplicate_token")) == "looks for the same token before it" + content);
  CHECK(summary_of(pattern("induction")) == "looks at what followed the same token before" + content);
  CHECK(summary_of(pattern("task_target")) == "looks at what the answer depends on" + content);
  CHECK(summary_of(pattern("task_target", {}, "agent")) == "looks at the agent" + content);
  CHECK(summary_of(pattern("task_target", {}, "its bracket")) == "looks at \"its bracket\"" + content);
  CHECK(summary_of(pattern("entropy")) ==
        "looks at all positions alike; without it 63 of 100 answers are lost");
  for (const ScoreInfo& score : kScoreTable)
    if (!score.noun.empty()) CHECK_NOTHROW(summary_of(pattern(score.name, 1)));
}

TEST_CASE("a summary says what is lost without the head, of the answers that can be known", "[inspect]") {
  const auto lost = [](const HeadVerdict& effects, const Effect& zero = kNeeded) {
    const std::string all = summary_of(pattern("mirror"), effects, Carried::yes, zero);
    return all.substr(all.find("; ", all.find(')')) + 2);
  };
  Effect of_known = kNeeded;
  of_known.knowable = 1000;
  of_known.knowable_change = -0.034;
  CHECK(lost(kImportant, of_known) == "without it 3.4 of 100 answers that can be known are lost");
  CHECK(lost({.verdict = Verdict::harmful}, of_known) ==
        "without it 3.4 more of 100 answers that can be known are right");
  of_known.knowable_change = 0.002;  // what is lost are guesses
  CHECK(lost(kImportant, of_known) == "without it 63 of 100 answers are lost");
  HeadVerdict in_loss = {.verdict = Verdict::important, .in_loss = true};
  CHECK(lost(in_loss) == "without it the model is less sure of its answers");
  in_loss.keeps_answers = true;
  CHECK(lost(in_loss) == "without it as many answers are right, with less confidence");
  HeadVerdict cancels = kImportant;
  cancels.names = {"0.2"};
  CHECK(lost(cancels) == "without it 63 of 100 answers are lost, but not without 0.2 as well");
  CHECK(lost({.verdict = Verdict::harmful}) == "without it 63 more of 100 answers are right");
  CHECK(lost({.verdict = Verdict::harmful, .in_loss = true}) ==
        "without it the model is surer of its answers");
  CHECK(lost({.verdict = Verdict::minor}) == "without it little changes, perhaps nothing of interest");
  CHECK(lost({.verdict = Verdict::backup, .names = {"0.1", "1.0"}}) ==
        "needed where 0.1 and 1.0 are missing");
  CHECK(lost({.verdict = Verdict::not_enough}) == "whether it is needed takes more sequences to say");
  CHECK(summary_of(pattern("mirror"), {.verdict = Verdict::at_chance}) ==
        "the model is no better than chance");
}

TEST_CASE("a summary claims a pattern only as far as its cells carry the effect", "[inspect]") {
  const std::string
      seen =
          "looks at position 0 (83 % of its attention, 51 % where position and content part; uniform attention 12 %)",
      lost = "; without it 63 of 100 answers are lost";
  const auto summary = [](std::optional<Carried> carried) {
    return summary_of(pattern("absolute_position", 0), kImportant, carried);
  };
  CHECK(summary(Carried::yes) == seen + lost);
  CHECK(summary(Carried::no) == seen + ", but that is not what it is needed for" + lost);
  CHECK(summary(Carried::open) == seen + ", which may be what it is needed for" + lost);
  CHECK(summary(Carried::constant) == "what matters of it depends on the position, not on the input" + lost);
  CHECK(summary_of(pattern("absolute_position", 0), {.verdict = Verdict::unused}, std::nullopt) ==
        "without it nothing of interest is lost");
  std::vector<HeadScore> none = HeadScorer(4, false).scores();
  CHECK(summarize(none, kNeeded, kImportant, std::nullopt) ==
        "what it looks at takes more sequences to say" + lost);
  for (HeadScore& score : none) score.eligible = score.name == "distance" ? 500 : 0;
  CHECK(summarize(none, kNeeded, kImportant, std::nullopt) == "follows no known pattern" + lost);
  for (HeadScore& score : none)
    if (score.name == "mirror")
      score = {.name = "mirror", .value = 0.9, .chance = 0.1, .attainable = 1, .eligible = 20};
  CHECK(summarize(none, kNeeded, kImportant, std::nullopt) ==
        "what it looks at takes more sequences to say" + lost);
  Effect unlabeled;
  CHECK(summarize(none, unlabeled, {.verdict = Verdict::not_enough}, std::nullopt) ==
        "what it looks at takes more sequences to say; what it is needed for takes answers to say");
}
