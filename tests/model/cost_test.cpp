// What a model costs, against the model itself and against numbers worked out by hand.
#include "thimble/model/cost.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "thimble/model/make_model.h"
#include "thimble/model/transformer.h"

using namespace thimble;

namespace {

struct CostCase {
  std::string name;
  ModelConfig model;
  std::int64_t vocabulary = 10, length = 16, sequences = 40, source_length = 0;

  ModelSizes sizes() const { return {vocabulary, length, source_length}; }
};

std::vector<CostCase> recurrent_cases() {
  std::vector<CostCase> all;
  for (const Score score : {Score::additive, Score::dot, Score::general, Score::scaled_dot, Score::none}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const auto& [length, source_length] : {std::pair{31, 22}, {20, 34}}) {
        CostCase c{.name = fmt::format("recurrent {} {} {}", int(score), dropout, length), .model = {}};
        c.model.kind = ModelKind::recurrent;
        c.model.d_model = 64;
        c.model.attention = {.dropout = dropout, .score = score};
        c.model.dropout = dropout;
        c.length = length;
        c.source_length = source_length;
        all.push_back(c);
        const bool attends = score == Score::additive || score == Score::general;
        if (!attends || dropout > 0 || length > 30) continue;
        c.name += " one sequence";  // shows what a tape holds once
        c.sequences = 1;
        c.model.d_model = 1024;
        all.push_back(c);
      }
    }
  }
  all.push_back(all.back());
  all.back().name += " large vocabulary";
  all.back().vocabulary = 3000;
  return all;
}

// Each changes one thing, so that a wrong term shows.
std::vector<CostCase> cost_cases() {
  ModelConfig base;
  base.d_model = 64;
  base.heads = 4;
  base.layers = 2;
  base.d_ff = 160;
  std::vector<CostCase> all{{"base", base, 10, 32},
                            {"one layer", base, 10, 32},
                            {"pre-norm", base, 10, 32},
                            {"GELU", base, 10, 32},
                            {"no positions", base, 10, 32},
                            {"learned", base, 10, 32},
                            {"max_length", base, 10, 32},
                            {"output net", base, 10, 32},
                            {"per sequence", base, 10, 32},
                            {"dropout", base, 10, 32},
                            {"attention dropout", base, 10, 32},
                            {"long", base, 10, 256},
                            {"large vocabulary", base, 3000, 32},
                            {"one head, long", base, 7, 200},
                            {"shared keys", base, 10, 32},
                            {"keys and values of other widths", base, 10, 32},
                            {"tied, summed", base, 10, 32},
                            {"general score", base, 10, 32},
                            {"additive score", base, 10, 32},
                            {"rotary", base, 10, 32},
                            {"ALiBi", base, 10, 32},
                            {"gated, RMS norm, SiLU", base, 10, 32},
                            {"attention alone", base, 10, 32},
                            {"convolution", base, 10, 32},
                            {"encoder-decoder", base, 10, 32},
                            {"encoder-decoder, pre-norm, learned", base, 10, 20},
                            {"encoder-decoder, tied, additive, dropout", base, 10, 32},
                            {"additive score, one head", base, 10, 200},
                            {"rotary, one head", base, 10, 200}};
  for (const CostCase& c : recurrent_cases()) all.push_back(c);
  all[1].model.layers = 1;
  all[2].model.norm = NormOrder::pre;
  all[3].model.activation = Activation::gelu;
  all[4].model.positions = Positions::none;
  all[5].model.positions = Positions::learned;
  all[6].model.positions = Positions::learned;
  all[6].model.max_length = 77;
  all[7].model.output.hidden = 300;
  all[8].model.output.per = OutputPer::sequence;
  all[8].model.output.hidden = 24;
  all[9].model.dropout = 0.1;
  all[10].model.attention.dropout = 0.1;
  all[13].model.heads = 1;
  all[13].sequences = 1;  // shows what a tape holds once
  all[14].model.attention.kv_heads = 2;
  all[15].model.heads = 5;
  all[15].model.attention = {.d_key = 9, .d_value = 40};
  all[16].model.attention = {.combine = Combine::sum, .tie_query_key = true};
  all[17].model.attention.score = Score::general;
  all[17].model.attention.d_key = 24;
  all[18].model.attention.score = Score::additive;
  all[19].model.positions = Positions::rotary;
  all[20].model.positions = Positions::alibi;
  all[21].model.norm_type = NormType::rms;
  all[21].model.activation = Activation::silu;
  all[21].model.gated = true;
  all[22].model.d_ff = 0;
  all[23].model.mixer = Mixer::convolution;
  all[23].model.window = 5;
  for (std::size_t i = 24; i < 27; ++i) {
    all[i].model.kind = ModelKind::encoder_decoder;
    all[i].model.output.per = OutputPer::next;
    all[i].source_length = i == 25 ? 48 : 24;
  }
  all[25].model.norm = NormOrder::pre;
  all[25].model.positions = Positions::learned;
  all[25].model.attention = {.d_key = 9, .d_value = 36};
  all[26].model.attention = {.dropout = 0.1, .score = Score::additive, .tie_query_key = true};
  all[26].model.dropout = 0.1;
  all[27].model.attention.score = Score::additive;
  all[28].model.positions = Positions::rotary;
  for (std::size_t i = 27; i < 29; ++i) {
    all[i].model.heads = 1;
    all[i].sequences = 1;
  }
  return all;
}

// Numbers in the one block that a tape keeps after two passes.
double numbers_on_tape(const CostCase& c, bool training) {
  const std::unique_ptr<Model> made = make_model(c.model, c.sizes());
  Model& model = *made;
  AlignedVector<Real> gradients(model.parameters().size());
  Tape tape(training ? Tape::Mode::training : Tape::Mode::inference);
  const Transposes transposes(model.parameters());
  tape.bind(model.parameters(), training ? std::span<Real>(gradients) : std::span<Real>(), &transposes);
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(c.sequences * c.length), 1);
  const std::vector<std::int32_t> sources(static_cast<std::size_t>(c.sequences * c.source_length), 1);
  const ModelInput input{
      .tokens = tokens, .length = c.length, .sources = sources, .source_length = c.source_length};
  const bool pooled = c.model.output.per == OutputPer::sequence;
  const std::vector<std::int32_t> labels(pooled ? static_cast<std::size_t>(c.sequences) : tokens.size(), 2);
  for (int pass = 0; pass < 2; ++pass) {
    tape.rewind();
    const Var loss = cross_entropy(model(tape, input, {.training = training}), labels);
    if (training) tape.backward(loss, 1, Tape::Keep::leaves);
  }
  tape.rewind();
  return static_cast<double>(tape.bytes()) / sizeof(Real);
}

}  // namespace

TEST_CASE("the number of parameters is that of the model", "[model]") {
  for (const CostCase& c : cost_cases()) {
    INFO(c.name);
    CHECK(parameter_count(c.model, c.sizes()) ==
          static_cast<double>(make_model(c.model, c.sizes())->parameters().count()));
  }
}

TEST_CASE("the estimate of activations is what a tape holds", "[model]") {
  for (const CostCase& c : cost_cases()) {
    for (const bool training : {true, false}) {
      CAPTURE(c.name, training);
      const double estimate = activation_count(c.model, c.sizes(), c.sequences, training);
      CHECK_THAT(numbers_on_tape(c, training), WithinRel(estimate, 0.02));
    }
  }
}

TEST_CASE("the arithmetic of configs/bench/base.yaml, worked out by hand", "[model]") {
  ModelConfig base;
  base.d_model = 256;
  base.heads = 8;
  base.layers = 6;
  base.d_ff = 1024;
  const Flops forward = forward_flops(base, {128, 128}, 1);
  CHECK(forward.projections == 402'653'184);   // 6 * 128 * 8 * 256^2
  CHECK(forward.attention == 100'663'296);     // 6 * 4 * 128^2 * 256
  CHECK(forward.feed_forward == 805'306'368);  // 6 * 128 * 4 * 256 * 1024
  CHECK(forward.output == 8'388'608);          // 128 * 2 * 256 * 128
  CHECK(forward.total() == 1'317'011'456);
  CHECK(training_flops(base, {128, 128}, 32).total() == 32 * 3 * 1'317'011'456.0);  // 126.4 GFLOP

  ModelConfig grouped = base;
  grouped.attention = {.kv_heads = 2, .d_key = 16, .d_value = 64};
  const Flops other = forward_flops(grouped, {128, 128}, 1);
  CHECK(other.projections == 314'572'800);  // 6 * 128 * 2 * 256 * (8 * 16 + 2 * 16 + 2 * 64 + 8 * 64)
  CHECK(other.attention == 125'829'120);    // 6 * 2 * 128^2 * 8 * (16 + 64)
  grouped.attention = {.tie_query_key = true};
  CHECK(forward_flops(grouped, {128, 128}, 1).projections == 301'989'888);  // 6 * 128 * 6 * 256^2

  grouped.attention = {.score = Score::general};
  CHECK(forward_flops(grouped, {128, 128}, 1).projections == forward.projections + 6 * 128 * 2 * 8 * 32 * 32);
  grouped.attention = {.score = Score::additive};
  CHECK(forward_flops(grouped, {128, 128}, 1).attention == forward.attention / 2);  // mixing alone
  grouped.gated = true;
  CHECK(forward_flops(grouped, {128, 128}, 1).feed_forward == forward.feed_forward * 3 / 2);
  grouped.mixer = Mixer::convolution;
  grouped.window = 7;
  CHECK(forward_flops(grouped, {128, 128}, 1).projections == 704'643'072);  // 6 * 128 * 2 * 7 * 256^2
  CHECK(forward_flops(grouped, {128, 128}, 1).attention == 0);

  ModelConfig writes = base;
  writes.kind = ModelKind::encoder_decoder;
  const Flops both = forward_flops(writes, {128, 128, 64}, 1);
  CHECK(both.projections == forward.projections * 5 / 4 * 2 - 100'663'296);  // all but queries of the source
  CHECK(both.attention == 176'160'768);  // 6 * 4 * 256 * (128^2 + 64^2 + 128 * 64)
  CHECK(both.feed_forward == forward.feed_forward * 3 / 2);
  CHECK(both.output == forward.output);

  const auto recurrent = [](Score score) {
    ModelConfig model{.kind = ModelKind::recurrent, .d_model = 32, .attention = {.score = score}};
    return forward_flops(model, {10, 8, 6}, 2);
  };
  CHECK(recurrent(Score::none).recurrent == 2 * 155'648);  // 6 * 9 * 32^2 + 2 * 32^2 + 8 * 12 * 32^2
  CHECK(recurrent(Score::none).output == 2 * 5'120);       // 8 * 2 * 32 * 10
  CHECK(recurrent(Score::none).total() == 2 * 160'768);
  CHECK(recurrent(Score::dot).projections == 2 * 32'768);       // 8 * 4 * 32^2
  CHECK(recurrent(Score::dot).attention == 2 * 6'144);          // 8 * 6 * 4 * 32
  CHECK(recurrent(Score::general).projections == 2 * 49'152);   // 8 * 6 * 32^2
  CHECK(recurrent(Score::additive).projections == 2 * 61'440);  // 8 * 6 * 32^2 + 6 * 2 * 32^2
  CHECK(recurrent(Score::additive).attention == 2 * 3'072);     // mixing alone
  CHECK(recurrent(Score::additive).recurrent == 2 * 204'800);   // 8 * 6 * 32^2 more

  base.output = {.per = OutputPer::sequence, .hidden = 100};
  CHECK(forward_flops(base, {128, 128}, 2).output == 2 * 76'800);  // 2 * (256 * 100 + 100 * 128)
  CHECK(training_flops(base, {128, 128}, 2).output == 6 * 76'800);
}

TEST_CASE("the largest sizes there are do not overflow", "[model]") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  ModelConfig model;
  model.d_model = model.heads = model.layers = model.d_ff = model.output.hidden = kMost;
  model.attention.dropout = model.dropout = 0.1;
  const double parameters = parameter_count(model, {kMost, kMost});
  CHECK(parameters > 5e27);
  CHECK(std::isfinite(parameters));
  const double flops = training_flops(model, {kMost, kMost}, kMost).total();
  CHECK(flops > 1e47);
  CHECK(std::isfinite(flops));
  const double activations = activation_count(model, {kMost, kMost}, kMost, true);
  CHECK(activations > 1e46);
  CHECK(std::isfinite(activations));
}
