// Hand-made heads get the right scores and labels; random heads get no label.
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"

using namespace thimble;

namespace {

struct Case {
  std::string name;  // of the label
  std::string score;
  hand_made::HandMade made;
  double accuracy;  // at least
  std::size_t head = 0;
  bool ignored = false;
};

std::vector<Case> cases() {
  return {{"mirror", "mirror", hand_made::mirror(), 1},
          {"mirror", "mirror", hand_made::ignored_mirror(), 0, 0, true},
          {"previous token", "previous_token", hand_made::previous_token(), 1},
          {"same token", "same_token", hand_made::same_token(), 0.9},
          {"previous token", "previous_token", hand_made::induction(), 0.35},
          {"induction", "induction", hand_made::induction(), 0.35, 2},
          {"position 2", "absolute_position", hand_made::fixed_position(), 1},
          {"uniform", "entropy", hand_made::uniform(), 1}};
}

}  // namespace

TEST_CASE("a hand-made head gets the right scores and label", "[inspect]") {
  for (const Case& c : cases()) {
    INFO(c.score);
    OpenConfig config = c.made.config;
    if (c.ignored) config.data.test = 500;  // what shows that a head costs nothing
    const InspectReport report =
        inspect_weights(config, c.made.set_weights, {.sequences = config.data.test, .examples = 0});
    CHECK(report.baseline.accuracy >= c.accuracy);
    const HeadReport& head = report.heads[c.head];
    const HeadScore& score = find_score(head.scores, c.score);
    CHECK(score.value >= 0.95 * score.attainable);
    CHECK(score.attainable > 0.9);
    INFO(head.label.sentence);
    CHECK(head.label.name == c.name);
    CHECK(head.label.verdict == (c.ignored ? Verdict::redundant : Verdict::important));
    CHECK((head.effects.zero.accuracy.interval.high < 0) == !c.ignored);
    if (c.ignored) CHECK(head.effects.zero.loss_change == 0);
  }
}

TEST_CASE("random heads get no label", "[inspect][slow]") {
  constexpr std::uint64_t kSeeds =
      sizeof(Real) == sizeof(float) ? 10 : 2;  // labels do not depend on the precision
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      OpenConfig config = c.made.config;
      config.train.seed = seed + 10;
      const InspectReport report = inspect_weights(config, [&](Model& model) { model.init(seed); });
      for (const HeadReport& head : report.heads) {
        INFO(c.score << ", seed " << seed << ": " << head.label.sentence);
        CHECK(head.label.name.empty());
        CHECK(head.label.verdict == Verdict::at_chance);
      }
    }
  }
}
