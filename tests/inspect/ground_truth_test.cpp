// Heads that are known to do one thing, because their weights were set so, are scored and named rightly;
// heads with random weights get no name.
#include <string>
#include <vector>

#include "catch.h"
#include "core/temporary_directory.h"
#include "hand_made.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/checkpoint.h"
#include "thimble/train/trainer.h"

using namespace thimble;

namespace {

InspectReport look(const Config& config, const std::function<void(Transformer&)>& set_weights) {
  const TemporaryDirectory directory;
  const Dataset dataset = make_dataset(config);
  Transformer model(config.model, dataset.vocabulary(), dataset.length());
  set_weights(model);
  save_weights(directory / "weights", model.parameters(), {});
  return inspect({config, directory / "weights"}, {.sequences = 60, .examples = 0, .progress = {}});
}

constexpr Effect kNeeded = {0.4, -0.5, {0.3, 0.5}, {-0.6, -0.4}};

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

TEST_CASE("a head that was made to do one thing is scored and named rightly", "[inspect]") {
  for (const Case& c : cases()) {
    INFO(c.score);
    const InspectReport report = look(c.made.config, c.made.set_weights);
    CHECK(report.baseline.accuracy >= c.accuracy);
    const HeadReport& head = report.heads[c.head];
    const HeadScore& score = find_score(head.scores, c.score);
    CHECK(score.value >= 0.95 * score.attainable);
    CHECK(score.attainable > 0.9);
    const Label label = label_head(seen.heads[c.head], kNeeded);
    INFO(label.sentence);
    CHECK(label.name == c.name);
    CHECK(label.verdict == Verdict::shown);
    CHECK(label_head(seen.heads[c.head], Effect()).verdict == Verdict::no_effect);
  }
}

TEST_CASE("random heads get no name", "[inspect]") {
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Seen seen = see(
          c.made.config, [&](Transformer& model) { model.init(seed); }, seed + 10);
      for (std::vector<HeadScore>& head : seen.heads) {
        const Label label = label_head(head, kNeeded);
        INFO(c.score << ", seed " << seed << ": " << label.sentence);
        CHECK(label.name.empty());
        CHECK(label.verdict == Verdict::no_pattern);
        for (HeadScore& score : head) score.at_init = std::numeric_limits<double>::quiet_NaN();
        CHECK(label_head(head, kNeeded).name.empty());
      }
    }
  }
}
