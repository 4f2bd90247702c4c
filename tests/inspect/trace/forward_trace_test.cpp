// Traces of single sequences, against the forward passes of the model.
#include "thimble/inspect/forward_trace.h"

#include <cmath>
#include <map>

#include "catch.h"
#include "inspect/saved_model.h"
#include "rounding.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"

using namespace thimble;

namespace {

struct TracedModel : SavedModel {
  using SavedModel::SavedModel;

  // Requires that `trace` equals a pass made here, without its padding. `alone`: the
  // trace was read by itself as well, so all bits are the same.
  void expect_own(const ForwardTrace& trace, std::span<const std::int32_t> tokens, std::int32_t length,
                  bool alone) const {
    const auto same = [&](const std::vector<double>& a, const std::vector<double>& b) {
      return alone ? a == b : same_but_for_rounding(source.config.model, a, b);
    };
    SiteRecorder recorder;
    Tape tape(Tape::Mode::inference);
    tape.bind(trainer.model().parameters(), {});
    trainer.model()(tape, {.tokens = tokens, .length = std::ssize(tokens), .lengths = {&length, 1}},
                    {.hooks = &recorder});
    std::vector<double> logits = recorder.seen.at({SiteKind::logits});
    const bool one = source.config.model.output.per == OutputPer::sequence;
    const auto rows = static_cast<std::size_t>(one ? 1 : length);
    logits.resize(rows * static_cast<std::size_t>(trainer.model().vocabulary()));
    CHECK(trace.tokens == std::vector<std::int32_t>(tokens.begin(), tokens.begin() + length));
    CHECK(same(trace.logits, logits));
    std::vector<double> attention;
    for (std::size_t l = 0; l < trainer.model().attention_layers().size(); ++l) {
      const std::vector<double>& weights = recorder.seen.at(weights_site(l));
      const std::int64_t time = std::ssize(tokens);
      for (std::int64_t row = 0; row < source.config.model.heads * time; ++row)
        if (row % time < length)
          attention.insert(attention.end(), weights.begin() + row * time,
                           weights.begin() + row * time + length);
    }
    CHECK(same(trace.attention, attention));
  }
};

std::string error_of(const SavedModel& trained, std::string_view text) {
  try {
    trace_input(trained.source, text);
  } catch (const DataError& e) {
    return e.what();
  }
  return "no error";
}

Config per_sequence() {
  Config config = small_config();
  config.task = {.name = "majority", .symbols = 5, .length = 7};
  config.model.output.per = OutputPer::sequence;
  return config;
}

}  // namespace

TEST_CASE("the user's sequence gives the bits of the model's logits and attention", "[inspect]") {
  for (const Config& config : {small_config(), rich_config(), per_sequence()}) {
    const TracedModel trained(config);
    const std::vector<std::int32_t> tokens{3, 0, 4, 4};
    trained.expect_own(trace_input(trained.source, token_text(vocabulary(trained.source), tokens)), tokens, 4,
                       true);
  }
}

TEST_CASE("any white space separates tokens, and shorter sequences are accepted", "[inspect]") {
  const TracedModel trained(small_config());
  trained.expect_own(trace_input(trained.source, "  5\t1\n"), std::vector<std::int32_t>{5, 1}, 2, true);
}

TEST_CASE("dropout is off for the user's sequence", "[inspect]") {
  Config config = rich_config();
  config.model.attention.dropout = config.model.dropout = 0.5;
  const TracedModel trained(config);
  const ForwardTrace first = trace_input(trained.source, "1 2 3");
  CHECK(trace_input(trained.source, "1 2 3").logits == first.logits);
  for (std::size_t row = 0; row < first.attention.size(); row += 3)
    CHECK_THAT(first.attention[row] + first.attention[row + 1] + first.attention[row + 2],
               WithinAbs(1, 1e-6));
}

TEST_CASE("predictions are the most probable tokens", "[inspect]") {
  const TracedModel trained(small_config());
  const ForwardTrace trace = trace_input(trained.source, "0 1 2 3");
  REQUIRE(trace.predictions.size() == 4);
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0;
    const auto best = row * 6 + static_cast<std::size_t>(trace.predictions[row]);
    for (std::size_t i = row * 6; i < row * 6 + 6; ++i) {
      sum += trace.probabilities[i];
      CHECK(trace.logits[i] <= trace.logits[best]);
      CHECK_THAT(std::log(trace.probabilities[i] / trace.probabilities[best]),
                 WithinAbs(trace.logits[i] - trace.logits[best], 1e-9));
    }
    CHECK_THAT(sum, WithinAbs(1, 1e-12));
  }
}

TEST_CASE("sequences of a split are read one by one, with their targets and without padding", "[inspect]") {
  Config padded = rich_config();
  padded.model.attention.mask = Mask::none;  // so that padding is hidden by the lengths alone
  for (const Config& config : {small_config(), rich_config(), padded, per_sequence()}) {
    const TracedModel trained(config);
    std::int64_t i = 0;
    trace_split(trained.source, Split::test, 12, [&](const ForwardTrace& trace) {
      Batch batch;
      trained.trainer.dataset().fill(Split::test, i++, 1, batch);
      trained.expect_own(trace, batch.tokens, batch.lengths[0], false);
      batch.labels.resize(trace.predictions.size());
      CHECK(trace.targets == batch.labels);
    });
    CHECK(i == 12);
  }
}

TEST_CASE("no more sequences are read than a split has, and as many as asked for of an endless one",
          "[inspect]") {
  const SavedModel small(small_config(), 0), endless(rich_config(), 0);
  int count = 0;
  const auto visit = [&](const ForwardTrace&) { ++count; };
  trace_split(small.source, Split::validation, 1000, visit);
  CHECK(count == 40);
  trace_split(endless.source, Split::train, 90, visit);
  CHECK(count == 130);
}

TEST_CASE("a trace as JSON has names, and maps by layer, head, query and key", "[inspect]") {
  const TracedModel trained(rich_config());
  const Names names = vocabulary(trained.source);
  ForwardTrace trace = trace_input(trained.source, "5 0 2");
  Json json = to_json(trace, trained.source.config.model, names);
  CHECK(json["tokens"] == Json{"5", "0", "2"});
  CHECK(json["vocabulary"] == Json{"0", "1", "2", "3", "4", "5"});
  CHECK(!json.contains("targets"));
  REQUIRE(json["attention"].size() == 2);
  REQUIRE(json["attention"][1].size() == 2);
  CHECK(json["attention"][1][0][2][1] == trace.attention[((1 * 2 + 0) * 3 + 2) * 3 + 1]);
  REQUIRE(json["logits"].size() == 3);
  CHECK(json["logits"][1][4] == trace.logits[1 * 6 + 4]);
  CHECK(json["probabilities"][2][5] == trace.probabilities[2 * 6 + 5]);
  CHECK(json["predictions"][1] == names[static_cast<std::size_t>(trace.predictions[1])]);

  trace.targets = {1, kIgnore, 3};
  json = example_json(trace, trained.source.config.model, names);
  CHECK(json["targets"] == Json{"1", nullptr, "3"});
  CHECK(!json.contains("logits"));
}

TEST_CASE("invalid inputs are refused, with what is valid", "[inspect]") {
  const TracedModel trained(small_config(), 0);
  CHECK(error_of(trained, "1 6 2") == "input: there is no token 6; the vocabulary has 6 tokens: 0 1 2 3 4 5");
  CHECK(error_of(trained, "1 2x 2") ==
        "input: there is no token 2x, did you mean 2?; the vocabulary has 6 tokens: 0 1 2 3 4 5");
  CHECK(error_of(trained, "1 22 2") == "input: there is no token 22; separate tokens by spaces: '1 2 2 2'");
  CHECK(error_of(trained, "1\x01").find("no token 1\\u{1}") != std::string::npos);
  for (const char* empty : {"", " \n\t "})
    CHECK(error_of(trained, empty) ==
          "input: is empty; give tokens separated by spaces, of 6 tokens: 0 1 2 3 4 5");
  CHECK(error_of(trained, "1 2 3 4 5") == "input: 5 tokens; this model accepts at most 4");

  Config config = small_config();
  config.model.max_length = 6;  // more than the task needs
  const SavedModel longer(config, 0);
  CHECK(error_of(longer, "1 2 3 4 5 1") == "no error");
  CHECK(error_of(longer, "1 2 3 4 5 1 1").find("accepts at most 6") != std::string::npos);

  config.task.symbols = 500;
  const std::string refusal = error_of(SavedModel(config, 0), "x");
  CHECK(refusal.find("500 tokens: 0 1 2") != std::string::npos);
  CHECK(refusal.size() < 260);
}

TEST_CASE("tokens outside the training inputs are reported", "[inspect]") {
  Config config = writing_config();
  config.task = {.name = "translation"};
  const ModelSource source{config, {}};
  CHECK(unseen_in(source, "the chien the ate biscuit mange", 1000) == std::vector<std::string>{"the", "ate"});
  CHECK(unseen_in(source, "le chien noir a", 1000).empty());
  CHECK(unseen_in(source, "le chien", 0).size() == 2);
  const ModelSource reverse{small_config(), {}};
  CHECK(unseen_in(reverse, "1 2", 100) ==
        std::vector<std::string>{"so short an input (theirs have 4 tokens or more)"});
}

TEST_CASE("weights of another model are refused", "[inspect]") {
  TracedModel trained(small_config(), 0);
  trained.source.config.model.d_ff = 25;
  CHECK_THROWS_AS(trace_input(trained.source, "1 2"), CheckpointError);
  CHECK_THROWS_AS(trace_split(trained.source, Split::test, 1, [](const ForwardTrace&) {}), CheckpointError);
}
