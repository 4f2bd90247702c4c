// Labels of heads: every verdict, every margin, and which of several names wins.
#include "thimble/inspect/label.h"

#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/made_effect.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

constexpr Effect kNeeded = made_effect(0.4, -0.63, {0.3, 0.5}, {-0.65, -0.61});
constexpr Effect kUseless = made_effect(0.001, 0, {-0.002, 0.004}, {0, 0});
const HeadVerdict kImportant = {.verdict = Verdict::important};
const HeadVerdict kUnused = {.verdict = Verdict::unused};

// Returns the scores of a head at chance, before and after training.
std::vector<HeadScore> at_chance() {
  std::vector<HeadScore> scores = HeadScorer(4, false).scores();
  for (HeadScore& s : scores) {
    const bool entropy = s.name == "entropy";
    s.value = s.at_init = entropy ? 0.9 : 0.1;
    s.chance = entropy ? 1 : 0.1;
    s.attainable = 1;
    s.eligible = 1000;
    s.same_class = 0.1;
    s.varied = {.value = 1, .chance = 0.1, .matched = 0.1, .attainable = 1, .eligible = 1000};
    if (s.name == "offset") s.at = -3;
    if (s.name == "absolute_position") s.at = 2;
  }
  return scores;
}

HeadScore& score(std::vector<HeadScore>& scores, std::string_view name) {
  return const_cast<HeadScore&>(find_score(scores, name));
}

// Returns the scores of a head with given values of some.
template <class... More>
std::vector<HeadScore> with(std::string_view name, double value, More... more) {
  std::vector<HeadScore> scores = at_chance();
  if constexpr (sizeof...(more) > 0) scores = with(more...);
  score(scores, name).value = value;
  return scores;
}

// Labels a head whose pattern, if it has one, was tested.
Label label(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects,
            Carried carried = Carried::yes) {
  CellEffect cells;
  cells.pattern = pattern_of(scores);
  cells.carried = carried;
  cells.whole = 0.9;
  cells.mean = 0.4;
  cells.alone = 0.8;
  return label_head(scores, zero, effects, cells);
}

std::string name_of(const std::vector<HeadScore>& scores) { return label(scores, kNeeded, kImportant).name; }

}  // namespace

TEST_CASE("a small effect keeps as many digits as its interval needs", "[inspect]") {
  Effect effect = kNeeded;
  effect.accuracy.mean = -0.0023;
  effect.accuracy.interval = {-0.0036, -0.0012};
  CHECK_THAT(label(with("mirror", 0.57), effect, kImportant).sentence,
             ContainsSubstring("costs 0.23 points (95 % CI 0.1–0.4);"));
  effect.accuracy.mean = -0.0032;
  effect.accuracy.interval = {-0.0035, -0.0029};
  CHECK_THAT(label(with("mirror", 0.57), effect, kImportant).sentence,
             ContainsSubstring("costs 0.320 points (95 % CI 0.29–0.35);"));
  effect.accuracy.interval.high = -1e-9;
  CHECK_THAT(label(with("mirror", 0.57), effect, kImportant).sentence,
             ContainsSubstring("costs 0.32000 points (95 % CI 0.0000–0.3500);"));
}

TEST_CASE("a pattern with an effect is a label", "[inspect]") {
  const Label made = label(with("mirror", 0.57), kNeeded, kImportant);
  CHECK(made.name == "mirror");
  CHECK(made.verdict == Verdict::important);
  CHECK(
      made.sentence ==
      "mirror: 57 % of its attention (chance 10 %); ablating it costs 63.0 points (95 % CI 61–65); these keys alone keep 80 % of what it does beyond its mean");
  std::vector<HeadScore> rare = with("mirror", 0.57);
  score(rare, "mirror").chance = 0.004;
  CHECK_THAT(label(rare, kNeeded, kImportant).sentence,
             ContainsSubstring("57 % of its attention (chance 0.4 %)"));
  CHECK(name_of(with("previous_token", 0.9)) == "previous token");
  CHECK(name_of(with("next_token", 0.9)) == "next token");
  CHECK(name_of(with("same_token", 0.9)) == "same token");
  CHECK(name_of(with("duplicate_token", 0.9)) == "duplicate token");
  CHECK(name_of(with("induction", 0.9)) == "induction");
  CHECK(name_of(with("self", 0.9)) == "this position");
  CHECK(name_of(with("task_target", 0.9)) == "task target");
  CHECK(name_of(with("offset", 0.9)) == "offset -3");
  CHECK(name_of(with("absolute_position", 0.9)) == "position 2");
  auto ahead = with("offset", 0.9);
  score(ahead, "offset").at = 3;
  CHECK(name_of(ahead) == "offset +3");
}

TEST_CASE("a pattern names a head only if its cells carry the effect", "[inspect]") {
  const auto described = [](Carried carried, const HeadVerdict& effects = kImportant) {
    return label(with("mirror", 0.57), kNeeded, effects, carried);
  };
  for (const Carried carried : {Carried::no, Carried::open, Carried::constant}) {
    CHECK(described(carried).name.empty());
    CHECK(described(carried).verdict == Verdict::important);
  }
  CHECK(
      described(Carried::no).sentence ==
      "attends by mirror, which does not carry its effect: 57 % of its attention (chance 10 %); these keys alone keep 80 % of what it does beyond its mean; ablating it costs 63.0 points (95 % CI 61–65)");
  CHECK(
      described(Carried::open).sentence ==
      "possibly mirror: 57 % of its attention (chance 10 %); ablating it costs 63.0 points (95 % CI 61–65); whether these keys carry its effect needs more sequences");
  CHECK(
      described(Carried::constant).sentence ==
      "acts like a constant: its mean at each position in its place costs nothing of interest; looks like mirror: 57 % of its attention (chance 10 %); ablating it costs 63.0 points (95 % CI 61–65)");
  CHECK(described(Carried::no, kUnused).verdict == Verdict::redundant);       // which needs no test
  CHECK(label_head(with("mirror", 0.57), kNeeded, kImportant).name.empty());  // without a test
}

TEST_CASE("a pattern that only the usual examples show is told, and names no head", "[inspect]") {
  std::vector<HeadScore> scores = with("induction", 0.78);
  score(scores, "induction").varied->value = 0.15;
  const Label made = label(scores, kNeeded, kImportant);
  CHECK(made.name.empty());
  CHECK(
      made.sentence ==
      "important, pattern unknown; ablating it costs 63.0 points (95 % CI 61–65); induction not confirmed: 78 % of its attention, but 15 % where position and content part (matched 10 %)");
}

TEST_CASE("a pattern without an effect is redundant", "[inspect]") {
  const Label made = label(with("mirror", 0.57), kUseless, kUnused);
  CHECK(made.name == "mirror");
  CHECK(made.verdict == Verdict::redundant);
  CHECK(
      made.sentence ==
      "looks like mirror: 57 % of its attention (chance 10 %), but ablating it costs nothing of interest, alone");
}

TEST_CASE("an effect without a pattern has no name", "[inspect]") {
  const Label made = label(at_chance(), kNeeded, kImportant);
  CHECK(made.name.empty());
  CHECK(made.verdict == Verdict::important);
  CHECK(made.sentence == "important, pattern unknown; ablating it costs 63.0 points (95 % CI 61–65)");
  const HeadVerdict in_loss = {.verdict = Verdict::important, .in_loss = true, .loss_cap = 3.25};
  CHECK(
      label(at_chance(), made_effect(0.25, 0, {0.125, 0.5}, {0, 0}), in_loss).sentence ==
      "important, pattern unknown; ablating it raises the loss by 0.25 (95 % CI 0.125–0.5), capped at 3.2 nats an answer");
  const HeadVerdict minor = {.verdict = Verdict::minor};
  CHECK(
      label(with("mirror", 0.57), made_effect(0, -0.02, {0, 0}, {-0.03, -0.005}), minor).sentence ==
      "mirror: 57 % of its attention (chance 10 %); perhaps not of interest: ablating it costs 2.00 points (95 % CI 0.5–3.0); these keys alone keep 80 % of what it does beyond its mean");
  const HeadVerdict cancelled = {.verdict = Verdict::important, .names = {"0.1", "1.0"}};
  CHECK_THAT(label(at_chance(), kNeeded, cancelled).sentence,
             EndsWith("(95 % CI 61–65); ablated together with 0.1 or 1.0 it costs nothing of interest"));
  const Label none = label(at_chance(), kUseless, kUnused);
  CHECK(none.name.empty());
  CHECK(none.verdict == Verdict::unused);
  CHECK(none.sentence == "no pattern found; ablating it costs nothing of interest, alone");
  CHECK(label(at_chance(), kUseless, {.verdict = Verdict::unused, .in_pairs = true}).sentence ==
        "no pattern found; ablating it costs nothing of interest, alone or with any one other head");
}

TEST_CASE("a harmful head, a backup and a model at chance say so", "[inspect]") {
  const Effect better = made_effect(-0.4, 0, {-0.5, -0.3}, {0, 0});
  const Label harmful =
      label(with("mirror", 0.57), better, {.verdict = Verdict::harmful, .in_loss = true, .loss_cap = 3});
  CHECK(harmful.name == "mirror");
  CHECK(harmful.verdict == Verdict::harmful);
  CHECK(
      harmful.sentence ==
      "mirror: 57 % of its attention (chance 10 %); harmful: ablating it lowers the loss by 0.4 (95 % CI 0.3–0.5), capped at 3 nats an answer; these keys alone keep 80 % of what it does beyond its mean");
  CHECK(label(at_chance(), made_effect(-0.4, 0.1, {-0.5, -0.3}, {0.05, 0.2}), {.verdict = Verdict::harmful})
            .sentence == "harmful: ablating it gains 10.0 points (95 % CI 5–20)");
  const HeadVerdict backup = {.verdict = Verdict::backup,
                              .group = {{0, 1}},
                              .names = {"0.1"},
                              .worth = made_effect(2, -0.9, {1, 3}, {-0.92, -0.88})};
  const Label pair = label(with("mirror", 0.57), kUseless, backup);
  CHECK(pair.name == "mirror");
  CHECK(pair.verdict == Verdict::backup);
  CHECK((pair.group == std::vector<HeadId>{{0, 1}}));
  CHECK(
      pair.sentence ==
      "mirror: 57 % of its attention (chance 10 %); backup for 0.1: without it, ablating this one costs 90.0 points (95 % CI 88–92); these keys alone keep 80 % of what it does beyond its mean");
  const Label unknown = label(at_chance(), kUseless, backup);
  CHECK(unknown.name.empty());
  CHECK(unknown.verdict == Verdict::backup);
  const Label lost = label(with("mirror", 0.57), kNeeded, {.verdict = Verdict::at_chance});
  CHECK(lost.name.empty());
  CHECK(lost.verdict == Verdict::at_chance);
  CHECK(lost.sentence == "no label: the model is no better than chance");
  const Label wide = label(with("mirror", 0.57), made_effect(0.01, 0, {-0.1, 0.12}, {-0.03, 0.03}),
                           {.verdict = Verdict::not_enough, .loss_cap = 3, .needed = 1234.5});
  CHECK(wide.name.empty());
  CHECK(wide.verdict == Verdict::not_enough);
  CHECK_THAT(
      wide.sentence,
      StartsWith("possibly mirror: 57 %") &&
          EndsWith(
              "accuracy changes by -3.00 to 3.00 points, loss by -0.1 to 0.12, capped at 3 nats an answer; "
              "about 1,235 sequences would do if its effect is what it seems"));
  CHECK_THAT(label(with("mirror", 0.57), made_effect(0.01, 0, {-0.1, 0.12}, {-0.03, 0.03}),
                   {.verdict = Verdict::not_enough})
                 .sentence,
             EndsWith("; analyze more sequences"));
}

TEST_CASE("a pattern is well above chance and above initialization", "[inspect]") {
  // Strength 0.25 is a quarter of the way from chance, 0.1, to attainable, 1.
  CHECK(name_of(with("mirror", 0.326)) == "mirror");
  CHECK(name_of(with("mirror", 0.324)).empty());
  auto scores = with("mirror", 0.326);
  score(scores, "mirror").attainable = 1.1;
  CHECK(name_of(scores).empty());

  scores = with("mirror", 0.9);
  score(scores, "mirror").at_init = 0.674;
  CHECK(name_of(scores) == "mirror");
  score(scores, "mirror").at_init = 0.676;
  CHECK(name_of(scores).empty());
  score(scores, "mirror").at_init = std::numeric_limits<double>::quiet_NaN();
  CHECK(name_of(scores) == "mirror");

  scores = with("mirror", 0.324);
  score(scores, "mirror").at_init = std::numeric_limits<double>::quiet_NaN();
  CHECK(name_of(scores).empty());

  // No value is above a chance that equals attainable.
  scores = with("mirror", 1);
  score(scores, "mirror").chance = 1;
  CHECK(name_of(scores).empty());
}

TEST_CASE("few queries are no evidence", "[inspect]") {
  auto scores = with("induction", 0.9);
  score(scores, "induction").eligible = 99;
  const Label made = label(scores, kNeeded, kImportant);
  CHECK(made.name.empty());
  CHECK(made.verdict == Verdict::not_enough);
  CHECK(made.sentence ==
        "not enough evidence: possibly induction, but only 99 eligible queries, at least 100 needed");
  score(scores, "induction").eligible = 100;
  CHECK(label(scores, kNeeded, kImportant).verdict == Verdict::important);
  // A pattern with enough queries wins over a stronger one without.
  score(scores, "induction").eligible = 99;
  score(scores, "mirror").value = 0.5;
  CHECK(name_of(scores) == "mirror");
  scores = at_chance();
  for (HeadScore& s : scores) s.eligible = 12;
  CHECK(label(scores, kNeeded, kImportant).sentence ==
        "not enough evidence: only 12 queries, at least 100 needed");
  score(scores, "entropy").value = 1;
  CHECK(label(scores, kNeeded, kImportant).verdict == Verdict::not_enough);
  scores = with("mirror", 0.9);
  score(scores, "mirror").eligible = 0;
  CHECK(label(scores, kNeeded, kImportant).sentence ==
        "important, pattern unknown; ablating it costs 63.0 points (95 % CI 61–65)");
}

TEST_CASE("the strongest pattern names the head, of about equal ones the most specific", "[inspect]") {
  CHECK(name_of(with("mirror", 0.5, "same_token", 0.6)) == "same token");
  CHECK(name_of(with("mirror", 0.9, "task_target", 0.9, "absolute_position", 0.89)) == "mirror");
  CHECK(name_of(with("induction", 0.83, "task_target", 0.9, "offset", 0.91)) == "induction");
  CHECK(name_of(with("induction", 0.8, "task_target", 0.9)) == "task target");
  CHECK(name_of(with("previous_token", 0.9, "offset", 0.9)) == "previous token");
  CHECK(name_of(with("task_target", 0.9, "offset", 0.9, "absolute_position", 0.9)) == "task target");
  CHECK(name_of(with("offset", 0.9, "absolute_position", 0.89)) == "offset -3");
  CHECK(name_of(with("offset", 0.5, "absolute_position", 0.9)) == "position 2");
  // Strength counts, not the value: here 0.6 of 0.6 is more than 0.65 of 1.
  auto scores = with("mirror", 0.65, "same_token", 0.6);
  score(scores, "same_token").attainable = 0.6;
  CHECK(name_of(scores) == "same token");
}

TEST_CASE("a uniform head has become uniform in training", "[inspect]") {
  const Label made = label(with("entropy", 0.995), kNeeded, kImportant);
  CHECK(made.name == "uniform");
  CHECK(made.verdict == Verdict::important);
  CHECK(
      made.sentence ==
      "uniform: normalized entropy 0.995; ablating it costs 63.0 points (95 % CI 61–65); these keys alone keep 80 % of what it does beyond its mean");
  CHECK(label(with("entropy", 0.995), kUseless, kUnused).verdict == Verdict::redundant);
  CHECK(name_of(with("entropy", 0.989)).empty());
  CHECK(name_of(with("entropy", 0.995, "mirror", 0.5)) == "mirror");
  // With small embeddings a head starts nearly uniform.
  auto scores = with("entropy", 0.999);
  score(scores, "entropy").at_init = 0.997;
  CHECK(name_of(scores).empty());
  score(scores, "entropy").at_init = 0.995;
  CHECK(name_of(scores) == "uniform");
  score(scores, "entropy").at_init = std::numeric_limits<double>::quiet_NaN();
  CHECK(name_of(scores).empty());
}

TEST_CASE("a label needs all scores", "[inspect]") { CHECK_THROWS_AS(label({}, kNeeded, kImportant), Error); }

TEST_CASE("of equally strong patterns the first counts, rounding aside", "[inspect]") {
  // With a causal mask, duplicate tokens are the same tokens.
  CHECK(name_of(with("duplicate_token", 0.9, "same_token", 0.9)) == "duplicate token");
  CHECK(name_of(with("duplicate_token", 0.9, "same_token", 0.9 + 1e-12)) == "duplicate token");
  CHECK(name_of(with("duplicate_token", 0.9, "same_token", 0.91)) == "same token");
}
