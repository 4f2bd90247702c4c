// Tests of the rounding bound of direct logit attribution.
#include <cmath>
#include <limits>

#include "catch.h"
#include "inspect/circuits/attribution.h"
#include "inspect/circuits/attribution_rounding.h"
#include "inspect/circuits/weights.h"
#include "thimble/engine/random.h"
#include "thimble/train/json.h"
#include "train/small_config.h"

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

double plain_norm(std::span<const double> x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

struct Scales {
  const char* parameter;
  double factor;
};

}  // namespace

TEST_CASE("rounding explains how far logits are from the sum of their parts", "[inspect]") {
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

TEST_CASE("a part that is missing or wrong by a thousandth exceeds the rounding bound", "[inspect]") {
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

TEST_CASE("the bound on rounding has the sizes of weights, biases and vectors", "[inspect]") {
  const Random random(1, Stream::gradcheck);
  for (const Config& config : attributable()) {
    Evaluator evaluator(config);
    ParameterStore& store = evaluator.model().parameters();
    for (std::size_t i = 0; i < store.values().size(); ++i)
      store.values()[i] += static_cast<Real>(0.1 * random.normal(i));
    const auto row = [&](const std::string& name, std::int64_t y) {
      const DoubleMatrix matrix = in_double(store, name);
      return std::vector<double>(matrix.row(y), matrix.row(y) + matrix.cols);
    };
    const auto channels = static_cast<double>(config.model.d_model);
    DoubleMatrix directions(in_double(store, "output.weight").rows, config.model.d_model);
    for (std::size_t i = 0; i < directions.values.size(); ++i) directions.values[i] = random.normal(i, 1);
    const AttributionRounding rounding(evaluator.model(), directions);

    for (std::size_t l = 0; l < evaluator.model().attention_layers().size(); ++l) {
      const MultiHeadAttention& attention =
          *evaluator.model().attention(evaluator.model().attention_layers()[l]);
      std::vector<double> weights;
      for (const Parameter p : attention.out_proj_weights)
        weights.insert(weights.end(), store.values(p).begin(), store.values(p).end());
      const std::span<const Real> bias = store.values(*attention.out_proj_bias);
      std::vector<Real> z;
      for (std::int64_t k = 0; k < config.model.heads * attention.sizes.d_value; ++k)
        z.push_back(static_cast<Real>(random.normal(static_cast<std::uint64_t>(k), 2)));
      const double of_z = plain_norm(std::vector<double>(z.begin(), z.end())),
                   of_bias = plain_norm(std::vector<double>(bias.begin(), bias.end()));
      CHECK_THAT(rounding.size(l, z.data()), WithinRel(std::sqrt(2.0 * static_cast<double>(z.size())) *
                                                           (plain_norm(weights) * of_z + of_bias),
                                                       1e-9));
      CHECK_THAT(AttributionRounding::size(z.data(), std::ssize(z)), WithinRel(of_z, 1e-12));
    }

    constexpr double kReal = std::numeric_limits<Real>::epsilon() / 2,
                     kDouble = std::numeric_limits<double>::epsilon() / 2;
    const bool biased = config.model.norm_type == NormType::layer;
    const double norm_bias = biased ? plain_norm(row("encoder.norm.bias", 0)) : 0;
    for (std::int64_t y = 0; y < directions.rows; ++y) {
      std::vector<double> u = row("output.weight", y), uw = u;
      for (std::size_t c = 0; c < u.size(); ++c) uw[c] *= row("encoder.norm.weight", 0)[c];
      double largest = 0;
      for (std::int64_t c = 0; c < directions.cols; ++c)
        largest = std::max(largest, std::abs(directions(y, c)));
      const double offset =
          plain_norm(u) * norm_bias + std::abs(row("output.bias", 0)[static_cast<std::size_t>(y)]);
      constexpr double kResidual = 3, kLast = 5;
      const double stream = kResidual *
                            std::hypot(kReal * largest, kDouble * std::sqrt(2 * channels) * plain_norm(uw)),
                   end = kReal * std::sqrt(8 * channels + 2 * 7) * (plain_norm(uw) * kLast + offset);
      CHECK_THAT(rounding.bound(static_cast<std::size_t>(y), kResidual, kLast, 7),
                 WithinRel(4 * std::hypot(stream, end), 1e-9));
    }
  }
}
