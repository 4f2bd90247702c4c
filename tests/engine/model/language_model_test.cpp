// What models have that are made as microgpt and nanoGPT: norms without weights, after the embedding and not before the
// output, no biases, and an output that is the embedding.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "catch.h"
#include "thimble/engine/hooks.h"
#include "thimble/engine/make_model.h"

using namespace thimble;

namespace {

constexpr std::int64_t kChannels = 8, kBareVocabulary = 5, kWindow = 6;

ModelConfig bare_model_config() {
  return {.d_model = kChannels,
          .heads = 2,
          .layers = 2,
          .d_ff = 12,
          .norm = NormOrder::pre,
          .norm_type = NormType::rms,
          .norm_weight = false,
          .norm_final = false,
          .bias = false,
          .positions = Positions::learned,
          .attention = {.mask = Mask::causal},
          .output = {.tied = true}};
}

// The values of some sites in a pass over a sequence.
struct SeenSites : Hooks {
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape&, ConstMatrixView value) override {
    for (std::int64_t r = 0; r < value.rows; ++r)
      for (std::int64_t c = 0; c < value.cols; ++c)
        values[{site.kind, site.layer}].push_back(static_cast<double>(value.row(r)[c]));
  }
  std::map<std::pair<SiteKind, std::int32_t>, std::vector<double>> values;
};

struct BarePass {
  explicit BarePass(const ModelConfig& config)
      : model(make_model(config, ModelSizes{.vocabulary = kBareVocabulary, .length = kWindow})) {
    model->init(3);
    for (int i = 0; i < std::ssize(model->parameters().entries()); ++i)
      if (model->parameters().entry({i}).name == "output.bias")
        std::ranges::fill(model->parameters().values(Parameter{i}), Real(0.25));
    const std::vector<std::int32_t> tokens{1, 0, 4, 2, 2, 3};
    Tape tape(Tape::Mode::inference);
    tape.bind(model->parameters(), {});
    const MatrixView z = (*model)(tape, {.tokens = tokens, .length = kWindow}, {.hooks = &seen}).value();
    for (std::int64_t r = 0; r < z.rows; ++r)
      for (std::int64_t c = 0; c < z.cols; ++c) logits.push_back(static_cast<double>(z.row(r)[c]));
  }
  std::unique_ptr<Model> model;
  SeenSites seen;
  std::vector<double> logits;
};

std::vector<double> values_of_parameter(const Model& model, std::string_view name) {
  const ParameterStore& store = model.parameters();
  const auto found = std::ranges::find(store.entries(), name, &ParameterStore::Entry::name);
  REQUIRE(found != store.entries().end());
  const auto values = store.values(Parameter{static_cast<int>(found - store.entries().begin())});
  return {values.begin(), values.end()};
}

// Returns the logits that the rows (T, C) of the residual stream have, if they go through an RMS norm or not.
std::vector<double> expected_logits(const BarePass& pass, std::vector<double> rows, bool normed) {
  const std::vector<double> weight = values_of_parameter(*pass.model, "token_embedding.weight");
  std::vector<double> logits;
  for (auto row = rows.begin(); row != rows.end(); row += kChannels) {
    const double square = std::inner_product(row, row + kChannels, row, 0.0) / kChannels;
    const double scale = normed ? 1 / std::sqrt(square + 1e-5) : 1;
    const double bias = pass.model->config().bias ? 0.25 : 0;
    for (auto w = weight.begin(); w != weight.end(); w += kChannels)
      logits.push_back(bias + scale * std::inner_product(row, row + kChannels, w, 0.0));
  }
  return logits;
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Catch::Approx(b[i]).margin(1e-5));
}

}  // namespace

TEST_CASE("a tied output reads the residual stream with the embedding, with a final norm or without",
          "[model]") {
  for (const auto& [normed, biased] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    CAPTURE(normed, biased);
    ModelConfig config = bare_model_config();
    config.norm_final = normed;
    config.bias = biased;
    const BarePass pass(config);
    check_near(pass.logits, expected_logits(pass, pass.seen.values.at({SiteKind::residual_out, 1}), normed));
  }
}

TEST_CASE("a norm after the embedding gives every position the same size", "[model]") {
  const auto sizes = [](bool normed) {
    ModelConfig config = bare_model_config();
    config.norm_embedding = normed;
    const std::vector<double> rows = BarePass(config).seen.values.at({SiteKind::embedding, 0});
    std::vector<double> squares;
    for (auto row = rows.begin(); row != rows.end(); row += kChannels)
      squares.push_back(std::inner_product(row, row + kChannels, row, 0.0) / kChannels);
    return squares;
  };
  check_near(sizes(true), std::vector<double>(kWindow, 1.0));
  CHECK(std::abs(sizes(false)[0] - 1) > 0.01);
}

TEST_CASE("models without biases or weights of norms have the other parameters alone", "[model]") {
  const auto names = [](const ModelConfig& config) {
    std::string all;
    const BarePass pass(config);
    for (const ParameterStore::Entry& entry : pass.model->parameters().entries())
      if (entry.name.find("layers.1") == std::string::npos) all += entry.name + "\n";
    return all;
  };
  const std::string layer =
      "encoder.layers.0.self_attn.in_proj_weight\nencoder.layers.0.self_attn.out_proj.weight\n"
      "encoder.layers.0.linear1.weight\nencoder.layers.0.linear2.weight\n";
  CHECK(names(bare_model_config()) == "token_embedding.weight\nposition_embedding.weight\n" + layer);
  ModelConfig config = bare_model_config();
  config.norm_type = NormType::layer;
  config.norm_weight = true;
  config.norm_embedding = config.norm_final = true;
  config.output.tied = false;
  CHECK(names(config) == "token_embedding.weight\nposition_embedding.weight\nembedding_norm.weight\n" +
                             layer +
                             "encoder.layers.0.norm1.weight\nencoder.layers.0.norm2.weight\n"
                             "encoder.norm.weight\noutput.weight\n");
  config.mixer = Mixer::convolution;
  CHECK(names(config).find("bias") == std::string::npos);
}
