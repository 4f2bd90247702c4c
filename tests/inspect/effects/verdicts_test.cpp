// Verdicts on models whose heads were set by hand, so that it is known which head the model depends on.
#include "thimble/inspect/verdict.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/made_effect.h"
#include "inspect/saved_model.h"
#include "source_directory.h"

using namespace thimble;

namespace {

// A head of one layer that attends to the mirrored position, or else to its own, and adds `weight` of the
// token there to the answer.
struct MirrorHead {
  double weight = 1;
  bool mirrors = true;
};

Config reversal(std::int64_t heads) {
  Config config = hand_made::mirror().config.values();
  config.model.heads = heads;
  config.data.test = 500;
  return config;
}

// Returns the report on a model that reverses 8 tokens with these heads.
InspectReport report_on(const std::vector<MirrorHead>& heads, double confidence = 10,
                        const InspectOptions& options = {.sequences = 500, .examples = 0}) {
  const auto set_weights = [&](Model& model) {
    hand_made::Maker make(model);
    make.start_layer(0, 2);
    make.set_confidence(confidence);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      make.use_head(static_cast<std::int64_t>(h));
      for (std::int64_t p = 0; p < make.time(); ++p)
        make.match(p, make.position(heads[h].mirrors ? make.time() - 1 - p : p), make.position(p),
                   hand_made::kSharp);
      make.copy_token_to_answer(heads[h].weight);
    }
  };
  return inspect_weights(reversal(std::ssize(heads)), set_weights, options);
}

std::vector<std::string> verdicts_of(const InspectReport& report) {
  std::vector<std::string> names;
  for (const HeadReport& head : report.heads) names.emplace_back(verdict_name(head.label.verdict));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a head that a model depends on is important, one that it ignores is redundant", "[inspect]") {
  const InspectReport report = report_on({{1}, {0}});
  CHECK(report.baseline.accuracy == 1);
  CHECK(verdicts_of(report) == Names{"important", "redundant"});
  CHECK(report.heads[1].label.name == "mirror");
  CHECK(report.joint.pairs.size() == 1);
  CHECK(report.joint.groups.empty());
  CHECK(report.joint.removable_by_importance == 1);
  CHECK(report.joint.removable_greedily == 1);
  CHECK(report.joint.removable_alone == 1);
}

TEST_CASE("two heads that do the same are backups for each other", "[inspect]") {
  const InspectReport report = report_on({{1}, {1}});
  CHECK(report.baseline.accuracy == 1);
  CHECK(verdicts_of(report) == Names{"backup", "backup"});
  REQUIRE(report.joint.groups.size() == 1);
  CHECK(report.joint.groups[0].effect.accuracy.mean < -0.8);
  REQUIRE(report.joint.groups[0].backups.size() == 2);
  CHECK((report.joint.groups[0].backups[1].head == HeadId{0, 1}));
  CHECK(report.joint.groups[0].backups[1].worth.accuracy.mean == report.joint.groups[0].effect.accuracy.mean);
  CHECK((report.heads[0].label.group == std::vector<HeadId>{{0, 1}}));
  CHECK_THAT(report.heads[1].label.sentence, StartsWith("mirror") && ContainsSubstring("backup for 0.0: "));
  CHECK(report.heads[0].effects.zero.accuracy.mean == 0);
  CHECK(report.joint.removable_alone == 2);
  CHECK(report.joint.removable_greedily == 1);
}

TEST_CASE("a head that costs nothing alone is a backup for one that costs something", "[inspect]") {
  const InspectReport report = report_on({{1}, {0.003}, {0}, {0}}, 0.5);
  CHECK(verdicts_of(report) == Names{"important", "backup", "redundant", "redundant"});
  CHECK_THAT(report.heads[1].label.sentence,
             ContainsSubstring("; backup for 0.0: without it, ablating this one costs ") &&
                 EndsWith("; without 0.0, these keys alone keep 100 % of what it does beyond its mean"));
  CHECK_THAT(report.heads[2].label.sentence,
             EndsWith("costs nothing of interest, alone or with any one other head"));
  REQUIRE(report.joint.pairs.size() == 6);
  CHECK(report.joint.pairs[0].worth_accuracy[0] > 0.8);  // of 0.0 without 0.1
  CHECK(report.joint.pairs[0].worth_accuracy[1] > 0.3);
  CHECK(report.joint.pairs[1].worth_accuracy[1] == 0);
}

TEST_CASE("two heads that cancel are important, and cost nothing together", "[inspect]") {
  const InspectReport report = report_on({{1}, {3, false}, {-3, false}, {0}});
  CHECK(report.baseline.accuracy == 1);
  CHECK(verdicts_of(report) == Names{"important", "important", "important", "redundant"});
  REQUIRE(report.joint.cancelling.size() == 1);
  CHECK((report.joint.cancelling[0].heads == std::vector<HeadId>{{0, 1}, {0, 2}}));
  CHECK_THAT(report.heads[1].label.sentence,
             ContainsSubstring("; ablated together with 0.2 it costs nothing of interest;"));
  CHECK_THAT(report.heads[0].label.sentence, !ContainsSubstring("together"));
  // After 0.3, each of the others costs something, but these two do not.
  CHECK(report.joint.removable_greedily == 3);
  CHECK((report.joint.greedy[1].id == HeadId{0, 3}));
  CHECK((report.joint.greedy[4].id == HeadId{0, 0}));
}

TEST_CASE("as many sequences as a report asks for show that a head costs nothing", "[inspect]") {
  const auto with_sequences = [](std::int64_t n) {
    return report_on({{1}, {0}}, 10, {.sequences = n, .examples = 0});
  };
  const InspectReport few = with_sequences(100);
  CHECK(verdicts_of(few)[1] == "not_enough");
  std::int64_t needed = 0;
  const std::string& sentence = few.heads[1].label.sentence;
  const std::size_t at = sentence.find("about ");
  REQUIRE(at != sentence.npos);
  needed = std::stoll(sentence.substr(at + 6));
  CHECK(needed > 300);
  CHECK(verdicts_of(with_sequences(needed + 5))[1] == "redundant");
  CHECK(verdicts_of(with_sequences(needed - 20))[1] == "not_enough");
}

TEST_CASE("of three heads that do the same, no pair matters, but all three do", "[inspect]") {
  const InspectReport report = report_on({{1}, {1}, {1}, {0}});
  CHECK(verdicts_of(report) == Names{"backup", "backup", "backup", "redundant"});
  REQUIRE(report.joint.groups.size() == 1);
  CHECK((report.joint.groups[0].heads == std::vector<HeadId>{{0, 0}, {0, 1}, {0, 2}}));
  CHECK(report.joint.pairs.size() == 6);
  CHECK(report.joint.exact);
  CHECK_THAT(report.heads[0].label.sentence,
             ContainsSubstring("backup for 0.1, 0.2: without them, ablating this one costs"));
}

TEST_CASE("a head whose removal improves the loss is harmful", "[inspect]") {
  const InspectReport report = report_on({{1}, {0.97, false}});
  CHECK(report.baseline.accuracy == 1);
  CHECK(verdicts_of(report) == Names{"important", "harmful"});
  CHECK(report.heads[1].effects.zero.loss_change < -0.3);
  CHECK_THAT(report.heads[1].label.sentence, ContainsSubstring("harmful: ablating it lowers the loss by"));
  CHECK(report.joint.removable_greedily == 1);
}

TEST_CASE("heads that cost a little are no backups for each other, however many there are", "[inspect]") {
  // Each costs less than the smallest effect, and a pair costs the sum of both.
  const InspectReport report = report_on({{1}, {0.004}, {0.004}, {0.004}}, 0.5);
  REQUIRE(report.joint.pairs.size() == 6);
  const PairEffect& pair = report.joint.pairs.back();
  CHECK(report.heads[1].effects.zero.loss_change < report.scale.smallest_loss);
  CHECK_THAT(pair.loss_change, WithinRel(2 * report.heads[1].effects.zero.loss_change, 0.05));
  for (const std::size_t head : {1, 2, 3}) CHECK(report.heads[head].label.verdict == Verdict::redundant);
}

TEST_CASE("a leak is important exactly where its interval is above the smallest effect", "[inspect][slow]") {
  int small = 0, large = 0;
  for (const double weight : {1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.02, 0.1, 0.3}) {
    const InspectReport report = report_on({{1}, {weight}}, 0.5);
    const Effect& effect = report.heads[1].effects.zero;
    INFO("weight " << weight << ": " << effect.loss_change << " of " << report.scale.smallest_loss);
    CHECK(effect.loss_change > 0);
    const bool counts = effect.capped_loss.interval.low > report.scale.smallest_loss;
    (counts ? large : small) += 1;
    CHECK(verdicts_of(report)[0] == "important");
    CHECK((verdicts_of(report)[1] == "important") == counts);
  }
  CHECK(small >= 5);
  CHECK(large >= 2);
}

TEST_CASE("the smallest effect of interest can be set", "[inspect]") {
  const std::vector<MirrorHead> heads = {{1}, {0.05}};
  const InspectReport usual = report_on(heads, 0.5);
  CHECK(verdicts_of(usual)[1] == "minor");
  CHECK_THAT(usual.scale.chance_loss, WithinAbs(std::log(8), 0.01));
  CHECK_THAT(usual.scale.smallest_loss, WithinRel(0.01 * usual.scale.chance_loss, 1e-12));
  CHECK_THAT(usual.scale.smallest_accuracy, WithinRel(0.01 * (1 - usual.scale.chance_accuracy), 1e-12));
  const InspectReport fine =
      report_on(heads, 0.5, {.sequences = 500, .examples = 0, .smallest_effect = 0.002});
  CHECK(verdicts_of(fine)[1] == "important");
}

TEST_CASE("the rounding error is that of the precision, and grows with the logits", "[inspect]") {
  const double unit = std::numeric_limits<Real>::epsilon();
  // Two answers are equally likely.
  const double usual = report_on({{1}, {1, false}}, 1).scale.rounding_loss,
               large = report_on({{1}, {1, false}}, 1e4).scale.rounding_loss;
  CHECK(usual > 0.1 * unit);
  CHECK(usual < 50 * unit);
  CHECK(large > 1e3 * usual);
}

TEST_CASE("verdicts have names", "[inspect]") {
  const std::pair<Verdict, const char*> names[] = {
      {Verdict::important, "important"},   {Verdict::harmful, "harmful"}, {Verdict::backup, "backup"},
      {Verdict::redundant, "redundant"},   {Verdict::unused, "unused"},   {Verdict::at_chance, "at_chance"},
      {Verdict::not_enough, "not_enough"}, {Verdict::minor, "minor"}};
  for (const auto& [verdict, name] : names) CHECK(verdict_name(verdict) == name);
}

TEST_CASE("untrained heads of every config get no label", "[inspect][slow]") {
  int heads = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    OpenConfig config = open_config(entry.path().string());
    if (attention_layers(config.model).empty()) continue;
    config.train.threads = 1;
    const int seeds = sizeof(Real) == sizeof(float) ? 6 : 1;
    config.train.precision = sizeof(Real) == 8 ? Precision::float64 : Precision::float32;
    for (int seed = 0; seed < seeds; ++seed) {
      const InspectReport report =
          inspect_weights(config, [&](Model& model) { model.init(static_cast<std::uint64_t>(100 + seed)); },
                          {.sequences = 100, .examples = 0});
      INFO(entry.path().filename() << ", seed " << seed);
      CHECK(report.scale.at_chance == true);
      for (const HeadReport& head : report.heads) {
        CHECK(head.label.name.empty());
        CHECK(head.label.verdict == Verdict::at_chance);
        ++heads;
      }
    }
  }
  CHECK(heads >= (sizeof(Real) == sizeof(float) ? 200 : 30));
}
