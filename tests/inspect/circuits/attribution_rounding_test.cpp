// Tests of the rounding bound of direct logit attribution.
#include <cmath>

#include "catch.h"
#include "inspect/circuits/attribution.h"
#include "thimble/train/json.h"
#include "train/config/small_config.h"

using namespace thimble;

namespace {

// Forwards observations, with the values of one site multiplied by a factor.
struct Tampering : ChunkHooks {
  AttributionObserver& observer;
  std::optional<Site> where;
  double factor;
  Tampering(AttributionObserver& w, std::optional<Site> site, double f)
      : observer(w), where(site), factor(f) {}
  void begin(const Chunk& chunk) override { observer.begin(chunk); }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    if (site != where) return observer.observe(site, shape, value);
    std::vector<Real> copy(value.data, value.data + value.elements());
    for (Real& x : copy) x = static_cast<Real>(static_cast<double>(x) * factor);
    observer.observe(site, shape, {copy.data(), value.rows, value.cols, value.cols});
  }
};

Attribution attribution_of(Evaluator& evaluator, std::optional<Site> site = {}, double factor = 1) {
  AttributionObserver observer(evaluator.model());
  Tampering hooks(observer, site, factor);
  evaluator.observe(hooks);
  return observer.finish();
}

// Returns pre-norm configs of every kind for which attribution is available.
std::vector<Config> attributable() {
  std::vector<Config> configs = configs_of_heads(rich_config());
  std::ranges::copy(configs_of_parts(rich_config()), std::back_inserter(configs));
  for (const Pooling pooling : {Pooling::mean, Pooling::last}) {
    Config& config = configs.emplace_back(rich_config());
    config.task = {.name = "majority", .symbols = 4, .length = 24, .min_length = 3};
    config.model.attention.mask = Mask::none;
    config.model.output = {.per = OutputPer::sequence, .hidden = 0, .pooling = pooling};
  }
  Config& wide = configs.emplace_back(rich_config());
  wide.model.d_model = 128;
  wide.model.d_ff = 96;
  wide.model.layers = 4;
  return configs;
}

// Multiplies the parameters whose name contains a text.
void scale(Model& model, std::string_view text, double factor) {
  ParameterStore& store = model.parameters();
  for (std::size_t i = 0; i < store.entries().size(); ++i) {
    if (store.entries()[i].name.find(text) == std::string::npos) continue;
    for (Real& x : store.values(Parameter{static_cast<int>(i)}))
      x = static_cast<Real>(static_cast<double>(x) * factor);
  }
}

struct Scales {
  const char* parameter;
  double factor;
};

}  // namespace

TEST_CASE("rounding explains how far logits are from the sum of their parts", "[inspect][slow]") {
  for (const Config& base : attributable()) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      for (const auto& [parameter, factor] :
           {Scales{"", 1}, Scales{"output", 1e-30}, Scales{"output", 1e-42}, Scales{"output", 1e20},
            Scales{"embedding", 1e4}, Scales{"embedding", 1e-6}, Scales{"out_proj", 1e3},
            Scales{"in_proj", 20}}) {
        Config config = base;
        config.train.seed = seed;
        Evaluator evaluator(config);
        evaluator.select(Split::test, 12);
        scale(evaluator.model(), parameter, factor);
        const Attribution attribution = attribution_of(evaluator);
        if (attribution.inexact == 0 && attribution.warning.empty() && attribution.labels > 0) continue;
        CAPTURE(seed, parameter, factor, to_yaml(config));
        FAIL(attribution.warning);
      }
    }
  }
}

TEST_CASE("rounding of a residual stream that grows and shrinks again is explained", "[inspect]") {
  for (const Config& config : attributable()) {
    Evaluator evaluator(config);
    evaluator.select(Split::test, 12);
    ParameterStore& store = evaluator.model().parameters();
    for (const auto& [layer, size] : {std::pair{"layers.0.", 1e5}, std::pair{"layers.1.", -1e5}})
      for (std::size_t i = 0; i < store.entries().size(); ++i) {
        const std::string& name = store.entries()[i].name;
        if (name.find(layer) == std::string::npos || !name.ends_with("linear2.bias")) continue;
        for (Real& x : store.values(Parameter{static_cast<int>(i)})) x += static_cast<Real>(size);
      }
    const Attribution attribution = attribution_of(evaluator);
    CAPTURE(attribution.warning, to_yaml(config));
    CHECK((attribution.inexact == 0 && attribution.labels > 0));
  }
}

TEST_CASE("a part that is missing or wrong by a thousandth exceeds the rounding bound", "[inspect][slow]") {
  for (const Config& base : attributable()) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Config config = base;
      config.train.seed = seed;
      Evaluator evaluator(config);
      evaluator.select(Split::test, 12);
      for (const double scale_of_logits : {1.0, 1e-30, 1e30}) {
        scale(evaluator.model(), "output", scale_of_logits);
        for (const SiteKind site : {SiteKind::embedding, SiteKind::head_output, SiteKind::residual_mid,
                                    SiteKind::residual_out, SiteKind::logits}) {
          for (const double factor : {1.001, 0.0}) {
            CAPTURE(seed, scale_of_logits, site, factor, to_yaml(config));
            const Attribution attribution = attribution_of(evaluator, Site{site}, factor);
            CHECK(attribution.inexact > 0);
            CHECK(attribution.parts.size() > 3);
          }
        }
        scale(evaluator.model(), "output", 1 / scale_of_logits);
      }
    }
  }
}

TEST_CASE("an error beyond the rounding bound gives a warning", "[inspect]") {
  Evaluator evaluator(rich_config());
  evaluator.select(Split::test, 12);
  const Attribution right = attribution_of(evaluator),
                    wrong = attribution_of(evaluator, Site{SiteKind::logits}, 2);
  CHECK(right.warning.empty());
  CHECK(wrong.inexact == wrong.labels);
  CHECK_THAT(wrong.warning,
             StartsWith(fmt::format(
                 "{0} of {0} logits are not the sum of their parts; the worst: the parts of", wrong.labels)));
  CHECK_THAT(wrong.logit, WithinRel(2 * right.logit, 1e-12));
  REQUIRE(wrong.parts.size() == right.parts.size());
  for (std::size_t i = 0; i < right.parts.size(); ++i) CHECK(wrong.parts[i].mean == right.parts[i].mean);
  const Json json = to_json(wrong);
  CHECK(json["warning"] == wrong.warning);
  CHECK(json["inexact"] == wrong.labels);
  CHECK_THAT(json["worst_error"].get<double>(), WithinAbs(0.5, 0.25));
}

TEST_CASE("the worst error is the largest share of the largest part of its logit", "[inspect]") {
  for (const Config& config : attributable()) {
    if (config.model.output.per != OutputPer::sequence) continue;  // one logit per sequence
    Evaluator evaluator(config);
    evaluator.select(Split::test, 12);
    for (const double factor : {0.5, 2.0, -100.0}) {
      double worst = 0;
      for (std::int64_t i = 0; i < 12; ++i) {
        Batch batch;
        evaluator.dataset().fill(Split::test, i, 1, batch);
        AttributionObserver observer(evaluator.model());
        Tampering hooks(observer, Site{SiteKind::logits}, factor);
        hooks.begin({.batch = batch});
        Tape tape(Tape::Mode::inference);
        tape.bind(evaluator.model().parameters(), {});
        evaluator.model()(tape, model_input(batch), {.hooks = &hooks});
        const Attribution one = observer.finish();
        REQUIRE(one.labels == 1);
        double sum = 0, largest = std::abs(one.logit);
        for (const Attribution::Part& part : one.parts) {
          sum += part.mean;
          largest = std::max(largest, std::abs(part.mean));
        }
        CHECK_THAT(one.worst_error, WithinRel(std::abs(sum - one.logit) / largest, 1e-9));
        worst = std::max(worst, one.worst_error);
      }
      CHECK_THAT(attribution_of(evaluator, Site{SiteKind::logits}, factor).worst_error,
                 WithinRel(worst, 1e-5));
    }
  }
}
