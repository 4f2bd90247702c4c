// Hand-made cross-attention, which attends to one position of the source that the task needs, gets the right
// scores and label; random heads get no label.
//
// Features are pairs of channels, +1 and -1 where present, as in hand_made.h: the token (V), the position (T)
// and the target (V). Encoder layers and the decoder's self-attention add nothing; head 0 of the
// cross-attention works, head 1 is idle. The last position predicts the end-of-sequence token.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/inspect/patch.h"

using namespace thimble;

namespace {

constexpr std::int64_t kWords = 6, kVocabulary = kWords + 2, kSource = 6, kTime = kSource + 1;
constexpr std::int64_t kChannels = 2 * (2 * kVocabulary + kTime);

Config pair_config(const std::string& task, std::int64_t sequences = 60) {
  Config config = small_config();
  config.task = {.name = task, .symbols = kWords, .length = kSource};
  config.data = {.train = 100, .validation = 20, .test = sequences};
  config.model.kind = ModelKind::encoder_decoder;
  config.model.d_model = kChannels;
  config.model.norm = NormOrder::pre;
  config.model.positions = Positions::learned;
  config.model.output = {.per = OutputPer::next};
  return config;
}

void set(Model& model, const std::string& name, std::int64_t row, std::int64_t column, double value) {
  const auto& entries = model.parameters().entries();
  const auto found = std::ranges::find(entries, name, &ParameterStore::Entry::name);
  REQUIRE(found != entries.end());
  const auto index = static_cast<std::size_t>(row * found->shape.last() + column);
  model.parameters().values()[found->offset + index] = static_cast<Real>(value);
}

// Puts all attention of target i on position key(i) of the source.
void attend_to(Model& model, const std::function<std::int64_t(std::int64_t)>& key, bool ignored) {
  const std::string cross = "decoder.layers.0.multihead_attn.";
  const auto token = [](std::int64_t t) { return 2 * t; };
  const auto position = [](std::int64_t p) { return 2 * (kVocabulary + p); };
  const auto answer = [](std::int64_t t) { return 2 * (kVocabulary + kTime + t); };
  const auto mark = [&](const std::string& name, std::int64_t row, std::int64_t column) {
    set(model, name, row, column, 1);
    set(model, name, row, column + 1, -1);
  };
  for (std::int64_t t = 0; t < kVocabulary; ++t) {
    mark("source_token_embedding.weight", t, token(t));
    mark("token_embedding.weight", t, token(t));
    set(model, cross + "in_proj_weight", 2 * kChannels + t, token(t), 1);
    if (!ignored) set(model, cross + "out_proj.weight", answer(t), t, 1);
    if (!ignored) set(model, cross + "out_proj.weight", answer(t) + 1, t, -1);
    set(model, "output.weight", t, answer(t), 10);
  }
  for (std::int64_t p = 0; p < kSource; ++p) mark("source_position_embedding.weight", p, position(p));
  for (std::int64_t p = 0; p < kTime; ++p) mark("position_embedding.weight", p, position(p));
  const double sharp = 30 * std::sqrt(kChannels / 2.0);
  for (std::int64_t i = 0; i < kSource; ++i) {
    set(model, cross + "in_proj_weight", i, position(i), sharp);
    set(model, cross + "in_proj_weight", kChannels + i, position(key(i)), 1);
  }
  set(model, "output.weight", kVocabulary - 1, position(kTime - 1), 40);
  const double scale = std::sqrt(2.0 * 2 / kChannels);  // two features are present, and read as 1
  for (std::int64_t c = 0; c < kChannels; ++c) {
    set(model, "encoder.norm.weight", 0, c, scale);
    set(model, "decoder.layers.0.norm2.weight", 0, c, scale);
    set(model, "decoder.norm.weight", 0, c, 1);
  }
}

struct CrossCase {
  std::string task, name, score;
  std::function<std::int64_t(std::int64_t)> key;
  bool ignored = false;
};

std::vector<CrossCase> cross_cases() {
  const auto mirror = [](std::int64_t i) { return kSource - 1 - i; };
  return {{"reverse", "mirror", "mirror", mirror},
          {"copy", "offset +0", "offset", [](std::int64_t i) { return i; }},
          {"reverse", "mirror", "mirror", mirror, true},
          {"reverse", "offset +0", "offset", [](std::int64_t i) { return i; }, true}};
}

constexpr HeadId kWorking{2, 0};  // head 0 of cross.0

}  // namespace

TEST_CASE("a hand-made cross head gets the right scores and label", "[inspect]") {
  for (const CrossCase& c : cross_cases()) {
    INFO(c.task << ", " << c.name);
    const std::int64_t sequences = c.ignored ? 500 : 60;  // 500 show that a head costs nothing
    const InspectReport report = inspect_weights(pair_config(c.task, sequences),
                                                 [&](Model& model) { attend_to(model, c.key, c.ignored); },
                                                 {.sequences = sequences, .examples = 0});
    if (!c.ignored) CHECK(report.baseline.accuracy == 1);
    REQUIRE(attention_layers(report.config.model)[kWorking.layer].name() == "cross.0");
    const auto id_of = [](const HeadReport& h) { return h.effects.id; };
    const HeadReport& head = *std::ranges::find(report.heads, kWorking, id_of);
    const HeadScore& score = find_score(head.scores, c.score);
    CHECK(score.value >= 0.95 * score.attainable);
    CHECK(score.attainable > 0.9);
    CHECK(score.eligible == sequences * kSource);
    INFO(head.label.sentence);
    CHECK(head.label.name == c.name);
    CHECK(head.label.verdict == (c.ignored ? Verdict::redundant : Verdict::important));
    if (c.ignored) CHECK(head.effects.zero.loss_change == 0);
    for (const HeadReport& other : report.heads)
      if (other.effects.id != kWorking) CHECK(other.effects.zero.loss_change == 0);
  }
}

TEST_CASE("patching the working cross head recovers the whole logit difference", "[inspect]") {
  const Config config = pair_config("reverse");
  const TemporaryDirectory directory;
  const Dataset dataset = make_dataset(config);
  const std::unique_ptr<Model> model = make_model(config.model, dataset);
  attend_to(
      *model, [](std::int64_t i) { return kSource - 1 - i; }, false);
  save_weights(directory / "weights", model->parameters(), {});
  const PatchingReport report = patch({config, directory / "weights"}, 3, 8);
  Example base;
  dataset.example(Split::test, 3, base);
  REQUIRE(report.clean.size() == base.input.size());
  for (std::size_t i = 0; i < base.input.size(); ++i)
    CHECK(report.clean[i] == dataset.names()[static_cast<std::size_t>(base.input[i])]);
  for (const PatchingReport::Head& h : report.heads)
    CHECK_THAT(h.noising.all.effect, WithinAbs(h.attention == "cross.0" && h.id.head == 0 ? 1 : 0, 1e-5));
}

TEST_CASE("random heads of an encoder-decoder get no label", "[inspect][slow]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Config config = pair_config("reverse");
    config.train.seed = seed + 10;
    const InspectReport report = inspect_weights(config, [&](Model& model) { model.init(seed); });
    for (const HeadReport& head : report.heads) {
      INFO("seed " << seed << ": " << head.label.sentence);
      CHECK(head.label.name.empty());
      CHECK(head.label.verdict == Verdict::at_chance);
    }
  }
}
