// The dropouts of each kind of model, no two of which share their random numbers.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "fixtures_compare.h"
#include "thimble/engine/make_model.h"
#include "thimble/engine/random.h"

using namespace thimble;

namespace {

constexpr std::int64_t kWidth = 16, kHeads = 4, kHidden = 24;
constexpr std::int32_t kLayers = 3;
constexpr std::uint32_t kSteps = 24;

using Kept = std::vector<bool>;  // of each element of one sample, in order

struct TrainingPass {
  tests::Capture sites;
  std::map<std::string, std::vector<Real>> gradients;  // by parameter
};

// A training pass over one sample.
std::unique_ptr<TrainingPass> run(const Model& model, const ModelInput& input, std::uint32_t step,
                                  bool training) {
  auto result = std::make_unique<TrainingPass>();
  AlignedVector<Real> gradients(model.parameters().size());
  Tape tape;
  tape.bind(model.parameters(), gradients);
  const Var y = model(tape, input, {.training = training, .seed = 5, .step = step, .hooks = &result->sites});
  Tensor seed(y.shape());
  for (std::size_t i = 0; i < seed.values().size(); ++i)
    seed.values()[i] = static_cast<Real>(Random(1, Stream::gradcheck).normal(i));
  tape.backward(y, seed.matrix());
  for (const auto& entry : model.parameters().entries()) {
    const auto first = gradients.begin() + static_cast<std::ptrdiff_t>(entry.offset);
    result->gradients[entry.name].assign(first, first + static_cast<std::ptrdiff_t>(entry.size()));
  }
  return result;
}

// Returns which elements are not 0.
Kept nonzero(const Tensor& value) {
  Kept kept;
  for (const Real x : value.values()) kept.push_back(x != 0);
  return kept;
}

// Returns which elements a sublayer changed in the residual stream: those that were not dropped.
Kept changed(const Tensor& before, const Tensor& after) {
  Kept kept;
  for (std::size_t i = 0; i < after.values().size(); ++i)
    kept.push_back(before.values()[i] != after.values()[i]);
  return kept;
}

// Weights of one key are 1, or 0 where dropped, as the output (1, T, H D) of the head then is.
Kept weights(const Tensor& heads, std::int64_t count) {
  const std::int64_t time = heads.shape()[1], width = heads.shape()[2] / count;
  Kept kept;
  for (std::int64_t h = 0; h < count; ++h)
    for (std::int64_t t = 0; t < time; ++t) kept.push_back(heads.matrix().row(t)[h * width] != 0);
  return kept;
}

// A dropped hidden channel passes no gradient to its column of linear2 (C, F).
Kept columns(const std::vector<Real>& gradient) {
  Kept kept(static_cast<std::size_t>(kHidden));
  for (std::size_t i = 0; i < gradient.size(); ++i)
    if (gradient[i] != 0) kept[i % static_cast<std::size_t>(kHidden)] = true;
  return kept;
}

using Dropouts = std::map<std::string, Kept>;  // by name, the samples one after another

void add_attention(Dropouts& all, const TrainingPass& pass, std::int32_t layer) {
  all[fmt::format("attention.{}", layer)] = weights(pass.sites.value({SiteKind::head_output, layer}), kHeads);
}

void add_feed_forward(Dropouts& all, const TrainingPass& pass, const std::string& layer, Site before,
                      Site out) {
  all[layer + ".hidden"] = columns(pass.gradients.at(layer + ".linear2.weight"));
  all[layer + ".out"] = changed(pass.sites.value(before), pass.sites.value(out));
}

void add_encoder(Dropouts& all, const TrainingPass& pass, SiteKind embedding) {
  Site before{embedding};
  all["encoder.embedding"] = nonzero(pass.sites.value(before));
  for (std::int32_t l = 0; l < kLayers; ++l) {
    const std::string layer = fmt::format("encoder.layers.{}", l);
    const Site mid{SiteKind::residual_mid, l}, out{SiteKind::residual_out, l};
    add_attention(all, pass, l);
    all[layer + ".mid"] = changed(pass.sites.value(before), pass.sites.value(mid));
    add_feed_forward(all, pass, layer, mid, out);
    before = out;
  }
}

void add_decoder(Dropouts& all, const TrainingPass& pass) {
  Site before{SiteKind::embedding};
  all["decoder.embedding"] = nonzero(pass.sites.value(before));
  for (std::int32_t l = 0; l < kLayers; ++l) {
    const std::string layer = fmt::format("decoder.layers.{}", l);
    const std::int32_t block = kLayers + l, self = kLayers + 2 * l;
    const Site mid{SiteKind::residual_mid, block}, cross{SiteKind::residual_cross, block},
        out{SiteKind::residual_out, block};
    add_attention(all, pass, self);
    add_attention(all, pass, self + 1);
    all[layer + ".mid"] = changed(pass.sites.value(before), pass.sites.value(mid));
    all[layer + ".cross"] = changed(pass.sites.value(mid), pass.sites.value(cross));
    add_feed_forward(all, pass, layer, cross, out);
    before = out;
  }
}

void add_recurrent(Dropouts& all, const TrainingPass& pass, Score score, std::int64_t time) {
  all["source_embedding"] = nonzero(pass.sites.value({SiteKind::source_embedding}));
  all["embedding"] = nonzero(pass.sites.value({SiteKind::embedding}));
  all["decoder.output"] = nonzero(pass.sites.value({SiteKind::decoder_output}));
  for (std::int32_t t = 0; t < (score == Score::additive ? time : 1); ++t)
    all[fmt::format("attention.{}", t)] = weights(pass.sites.value({SiteKind::head_output, 0, t}), 1);
}

struct DropoutCase {
  std::string name;
  ModelConfig config;
  std::size_t dropouts;
  std::int64_t time = 1;  // more would hide which weights are dropped
};

// Pre-norm, where the residual stream is a plain sum; tanh, which is never 0.
ModelConfig config_of(ModelKind kind) {
  ModelConfig config{.kind = kind,
                     .d_model = kWidth,
                     .heads = kHeads,
                     .layers = kLayers,
                     .d_ff = kHidden,
                     .norm = NormOrder::pre,
                     .activation = Activation::tanh};
  config.attention.dropout = config.dropout = 0.5;
  if (kind != ModelKind::encoder) config.output.per = OutputPer::next;
  return config;
}

std::vector<DropoutCase> dropout_cases() {
  ModelConfig additive = config_of(ModelKind::recurrent), dot = additive;
  additive.attention.score = Score::additive;
  dot.attention.score = Score::dot;
  return {{"encoder", config_of(ModelKind::encoder), 1 + kLayers * 4},
          {"encoder-decoder", config_of(ModelKind::encoder_decoder), 2 + kLayers * (4 + 6)},
          {"recurrent, additive", additive, 3 + 5, 5},
          {"recurrent, dot", dot, 3 + 1, 5}};
}

Dropouts dropouts_of(const DropoutCase& c, bool training) {
  const std::unique_ptr<Model> model = make_model(c.config, {7, c.time, 1});
  model->init(3);
  for (const auto& entry : model->parameters().entries())  // with all heads dropped, the bias remains
    if (entry.name.ends_with("bias"))
      for (std::size_t i = 0; i < entry.size(); ++i)
        model->parameters().values()[entry.offset + i] += Real(0.1);
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(c.time), 2), source{4};
  ModelInput input{.tokens = tokens, .length = c.time};
  if (c.config.kind != ModelKind::encoder) {
    input.sources = source;
    input.source_length = 1;
  }
  Dropouts all;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const auto pass = run(*model, input, step, training);
    Dropouts now;
    if (c.config.kind == ModelKind::encoder) add_encoder(now, *pass, SiteKind::embedding);
    if (c.config.kind == ModelKind::recurrent) add_recurrent(now, *pass, c.config.attention.score, c.time);
    if (c.config.kind == ModelKind::encoder_decoder) {
      add_encoder(now, *pass, SiteKind::source_embedding);
      add_decoder(now, *pass);
    }
    for (auto& [name, kept] : now) {
      Kept& samples = all[name];
      samples.insert(samples.end(), kept.begin(), kept.end());
    }
  }
  return all;
}

// Returns whether the first elements of each sample are equal in two dropouts: they are if both have one
// site.
bool same_draws(const Kept& a, const Kept& b) {
  const std::size_t size_a = a.size() / kSteps, size_b = b.size() / kSteps, size = std::min(size_a, size_b);
  for (std::size_t sample = 0; sample < kSteps; ++sample)
    for (std::size_t i = 0; i < size; ++i)
      if (a[sample * size_a + i] != b[sample * size_b + i]) return false;
  return true;
}

}  // namespace

TEST_CASE("every dropout of a model acts, each on random numbers of its own", "[model]") {
  for (const DropoutCase& c : dropout_cases()) {
    CAPTURE(c.name);
    const Dropouts all = dropouts_of(c, true);
    CHECK(all.size() == c.dropouts);
    for (auto a = all.begin(); a != all.end(); ++a) {
      CAPTURE(a->first);
      const auto kept = std::ranges::count(a->second, true), size = std::ssize(a->second);
      CHECK((kept > size / 5 && kept < size - size / 5));
      for (auto b = all.begin(); b != a; ++b) {
        CAPTURE(b->first);
        CHECK_FALSE(same_draws(a->second, b->second));
      }
    }
  }
}

TEST_CASE("no dropout acts in an evaluation, or where its probability is 0", "[model]") {
  for (DropoutCase c : dropout_cases()) {
    CAPTURE(c.name);
    for (const auto& [name, kept] : dropouts_of(c, false)) {
      CAPTURE(name);
      CHECK(std::ranges::count(kept, false) == 0);
    }
    c.config.dropout = 0;
    for (const auto& [name, kept] : dropouts_of(c, true)) {
      CAPTURE(name);
      const bool attention = name.starts_with("attention");
      CHECK((std::ranges::count(kept, false) > 0) == attention);
    }
  }
}
