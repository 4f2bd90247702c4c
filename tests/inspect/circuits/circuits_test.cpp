// Circuits of heads, against full matrices and for hand-made heads.
#include "thimble/inspect/circuits.h"

#include <cmath>
#include <limits>

#include "catch.h"
#include "inspect/circuits/singular_values.h"
#include "inspect/circuits/weights.h"
#include "random_matrix.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/config/small_config.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

HeadWeights random_head(std::int64_t channels, std::int64_t size, std::uint64_t seed) {
  return {.query = random_matrix(size, channels, seed),
          .key = random_matrix(size, channels, seed + 1),
          .value = random_matrix(size, channels, seed + 2),
          .output = random_matrix(channels, size, seed + 3)};
}

DoubleMatrix times(double factor, DoubleMatrix m) {
  for (double& x : m.values) x *= factor;
  return m;
}

double norm(const DoubleMatrix& m) {
  double sum = 0;
  for (const double x : m.values) sum += x * x;
  return std::sqrt(sum);
}

// The matrix with these rows, each a unit vector of (C), or minus one: 1 is the first, -2 minus the second.
DoubleMatrix units(std::int64_t channels, const std::vector<int>& which) {
  DoubleMatrix m(static_cast<std::int64_t>(which.size()), channels);
  for (std::size_t i = 0; i < which.size(); ++i)
    m(static_cast<std::int64_t>(i), std::abs(which[i]) - 1) = which[i] > 0 ? 1 : -1;
  return m;
}

double reciprocity(const DoubleMatrix& query, const DoubleMatrix& key) {
  HeadWeights head = random_head(query.cols, query.rows, 5);
  head.query = query;
  head.key = key;
  return head_circuits(head, random_matrix(3, query.cols, 9), nullptr).qk_reciprocity.value();
}

double copying(const HeadWeights& head, const DoubleMatrix& embedding, const DoubleMatrix& unembedding) {
  return head_circuits(head, embedding, &unembedding).ov_copying.value();
}

}  // namespace

TEST_CASE("a head that copies scores 1, its negative -1, one that moves tokens along 0", "[inspect]") {
  // The head copies in a few dimensions: W_U W_O W_V W_E = (W_V W_E)^T (W_V W_E).
  HeadWeights head = random_head(12, 5, 1);
  head.output = transposed(head.value);
  const DoubleMatrix embedding = random_matrix(9, 12, 2);
  CHECK_THAT(copying(head, embedding, embedding), WithinAbs(1, 1e-12));
  head.output = times(-1, head.output);
  CHECK_THAT(copying(head, embedding, embedding), WithinAbs(-1, 1e-12));
  // Attending to token v raises the logit of v + 1: the eigenvalues are the roots of 1.
  const HeadWeights identity{.query = units(4, {1}),
                             .key = units(4, {1}),
                             .value = units(4, {1, 2, 3, 4}),
                             .output = units(4, {1, 2, 3, 4})};
  CHECK_THAT(copying(identity, units(4, {1, 2, 3, 4}), units(4, {4, 1, 2, 3})), WithinAbs(0, 1e-12));
  CHECK_THAT(copying(identity, units(4, {1, 2, 3, 4}), units(4, {1, -2, -3, -4})), WithinAbs(-0.5, 1e-12));
}

TEST_CASE("copying through (D, D) is that of the (V, V) map", "[inspect]") {
  struct Sizes {
    std::int64_t vocabulary, channels, head;
  };
  for (const auto& [v, c, d] : {Sizes{20, 12, 4}, Sizes{3, 12, 6}, Sizes{7, 7, 7}, Sizes{5, 3, 1}}) {
    CAPTURE(v, c, d);
    const DoubleMatrix embedding = random_matrix(v, c, 20), unembedding = random_matrix(v, c, 21);
    const HeadCircuits circuits = head_circuits(random_head(c, d, 10), embedding, &unembedding);
    double trace = 0, real = 0, size = 0;
    for (std::int64_t i = 0; i < v; ++i) trace += circuits.ov_tokens(i, i);
    for (const auto& e : eigenvalues(circuits.ov_tokens)) {
      real += e.real();
      size += std::abs(e);
    }
    CHECK_THAT(real, WithinAbs(trace, 1e-10 * size));
    // Zero eigenvalues are computed as small numbers.
    CHECK_THAT(circuits.ov_copying.value(), WithinAbs(trace / size, 1e-9));
    CHECK((d == 1 || std::abs(circuits.ov_copying.value()) < 0.999));
  }
}

TEST_CASE("reciprocity is 1 for a symmetric map, 0 for an antisymmetric one", "[inspect]") {
  const DoubleMatrix query = random_matrix(3, 8, 1), key = random_matrix(3, 8, 2);
  CHECK_THAT(reciprocity(query, query), WithinAbs(1, 1e-7));
  CHECK_THAT(reciprocity(query, times(-2, query)), WithinAbs(1, 1e-7));
  CHECK_THAT(reciprocity(units(4, {1, 2}), units(4, {2, -1})), WithinAbs(0, 1e-7));
  CHECK_THAT(reciprocity(units(4, {1}), units(4, {2})), WithinAbs(1 - std::sqrt(0.5), 1e-12));

  const DoubleMatrix map = matmul(transposed(query), key), back = transposed(map);
  DoubleMatrix difference = map;
  for (std::size_t i = 0; i < map.values.size(); ++i) difference.values[i] -= back.values[i];
  CHECK_THAT(reciprocity(query, key), WithinRel(1 - norm(difference) / (norm(map) + norm(back)), 1e-12));
}

TEST_CASE("singular values are those of the (C, C) maps", "[inspect]") {
  const HeadWeights head = random_head(12, 4, 3);
  const HeadCircuits circuits = head_circuits(head, random_matrix(5, 12, 8), nullptr);
  const DoubleMatrix one = units(12, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto ov = singular_values_of_product(matmul(head.output, head.value), one),
             qk = singular_values_of_product(matmul(transposed(head.query), head.key), one);
  REQUIRE((circuits.ov_singular_values.size() == 4 && circuits.qk_singular_values.size() == 4));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_THAT(circuits.ov_singular_values[i], WithinRel(ov[i], 1e-12));
    CHECK_THAT(circuits.qk_singular_values[i], WithinRel(qk[i], 1e-12));
  }
}

TEST_CASE("unavailable circuits are missing, with a reason", "[inspect]") {
  HeadWeights head = random_head(6, 2, 3);
  const DoubleMatrix few = random_matrix(64, 6, 8), many = random_matrix(65, 6, 8);
  const HeadCircuits all = head_circuits(head, few, &few);
  CHECK(all.reasons.empty());
  CHECK((all.qk_tokens.rows == 64 && all.ov_tokens.cols == 64));

  const HeadCircuits two_layer = head_circuits(head, few, nullptr);
  CHECK_FALSE(two_layer.ov_copying);
  CHECK(two_layer.ov_tokens.values.empty());
  CHECK(two_layer.qk_tokens.rows == 64);
  CHECK(two_layer.reasons.size() == 2);
  CHECK_THAT(two_layer.reasons.at("ov_copying"), ContainsSubstring("two-layer output net"));

  const HeadCircuits large = head_circuits(head, many, &many);
  CHECK(large.ov_copying);
  CHECK((large.qk_tokens.values.empty() && large.ov_tokens.values.empty()));
  CHECK_THAT(large.reasons.at("qk_tokens"), ContainsSubstring("at most 64"));
  CHECK(large.reasons.size() == 2);

  head.query = DoubleMatrix(2, 6);
  head.value = DoubleMatrix(2, 6);
  const HeadCircuits zero = head_circuits(head, few, &few);
  CHECK((!zero.ov_copying && !zero.qk_reciprocity));
  CHECK((zero.reasons.contains("ov_copying") && zero.reasons.contains("qk_reciprocity")));
  CHECK(zero.ov_singular_values == std::vector<double>{0, 0});
}

TEST_CASE("weights that are not finite are refused", "[inspect]") {
  HeadWeights head = random_head(6, 2, 3);
  head.key(1, 2) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(head_circuits(head, random_matrix(5, 6, 8), nullptr), NumericError);
}

TEST_CASE("every head of a model gets its own weights, in PyTorch's orientation", "[inspect]") {
  Trainer trainer(rich_config());
  trainer.step();
  const Model& model = trainer.model();
  const std::vector<HeadCircuits> circuits = head_circuits(model);
  const ModelConfig& config = model.config();
  const std::int64_t channels = config.d_model, size = channels / config.heads, v = model.vocabulary();
  REQUIRE(static_cast<std::int64_t>(circuits.size()) == config.layers * config.heads);
  const ParameterStore& store = model.parameters();
  const auto named = [&](const std::string& name) {
    for (std::size_t i = 0; i < store.entries().size(); ++i) {
      if (store.entries()[i].name == name) return store.values(Parameter{static_cast<int>(i)});
    }
    throw Error(name);
  };
  const auto at = [](std::span<const Real> m, std::int64_t row, std::int64_t col, std::int64_t cols) {
    return static_cast<double>(m[static_cast<std::size_t>(row * cols + col)]);
  };
  const auto embedding = named("token_embedding.weight"), unembedding = named("output.weight");
  for (std::size_t head = 0; head < circuits.size(); ++head) {
    const auto layer = static_cast<std::int64_t>(head) / config.heads,
               first = static_cast<std::int64_t>(head) % config.heads * size;
    const auto prefix = "encoder.layers." + std::to_string(layer) + ".self_attn.";
    const auto in = named(prefix + "in_proj_weight"), out = named(prefix + "out_proj.weight");
    for (const auto& [i, j] : {std::pair{0, 0}, {1, 4}, {5, 2}}) {
      double qk = 0, ov = 0;
      for (std::int64_t d = first; d < first + size; ++d) {
        double query = 0, key = 0, value = 0, written = 0;
        for (std::int64_t c = 0; c < channels; ++c) {
          query += at(in, d, c, channels) * at(embedding, i, c, channels);
          key += at(in, channels + d, c, channels) * at(embedding, j, c, channels);
          value += at(in, 2 * channels + d, c, channels) * at(embedding, j, c, channels);
          written += at(unembedding, i, c, channels) * at(out, c, d, channels);
        }
        qk += query * key / std::sqrt(static_cast<double>(size));
        ov += written * value;
      }
      REQUIRE(circuits[head].qk_tokens.rows == v);
      CHECK_THAT(circuits[head].qk_tokens(i, j), WithinAbs(qk, 1e-10));
      CHECK_THAT(circuits[head].ov_tokens(j, i), WithinAbs(ov, 1e-10));
    }
  }
}

TEST_CASE("circuits do not depend on the layout of heads", "[inspect]") {
  for (const Config& config : configs_of_heads(rich_config())) {
    CAPTURE(config.model.heads, config.model.attention.d_value);
    Trainer trainer(config);
    trainer.step();
    const Model& model = trainer.model();
    const std::vector<HeadCircuits> circuits = head_circuits(model);
    REQUIRE(static_cast<std::int64_t>(circuits.size()) == config.model.layers * config.model.heads);
    for (std::size_t i = 0; i < circuits.size(); ++i) {
      CAPTURE(i);
      CHECK(std::ssize(circuits[i].ov_singular_values) == config.model.attention_sizes().d_value);
      CHECK(std::ssize(circuits[i].qk_singular_values) == config.model.attention_sizes().d_key);
      double trace = 0, sum = 0, size = 0;
      for (std::int64_t v = 0; v < model.vocabulary(); ++v) trace += circuits[i].ov_tokens(v, v);
      for (const auto& e : eigenvalues(circuits[i].ov_tokens)) {
        sum += e.real();
        size += std::abs(e);
      }
      CHECK_THAT(sum, WithinAbs(trace, 1e-10 * size));
      CHECK_THAT(circuits[i].ov_copying.value(), WithinAbs(trace / size, 1e-6));
      if (config.model.attention.tie_query_key)
        CHECK_THAT(circuits[i].qk_reciprocity.value(), WithinAbs(1, 1e-6));
      // Heads of a group differ only in their queries.
      const std::size_t partner = i ^ 1U;
      if (config.model.attention.kv_heads > 0) {
        const std::int64_t head = static_cast<std::int64_t>(i) % config.model.heads;
        const auto& attention = *model.attention(model.attention_layers()[i / 4]);
        CHECK(attention.head(model.parameters(), head).value.data ==
              attention.head(model.parameters(), head ^ 1).value.data);
        CHECK(circuits[i].qk_tokens.values != circuits[partner].qk_tokens.values);
      }
    }
  }
}

TEST_CASE("the QK circuit depends on the score", "[inspect]") {
  const std::vector<Config> configs = configs_of_parts(rich_config());
  Trainer general(configs[0]), additive(configs[1]);
  const Model& model = general.model();
  const ParameterStore& store = model.parameters();
  const DoubleMatrix tokens = in_double(store, "token_embedding.weight");
  const MultiHeadAttention& attention = *model.attention(model.attention_layers()[1]);
  const std::vector<HeadCircuits> circuits = head_circuits(model);
  for (std::int64_t h = 0; h < 2; ++h) {
    const auto views = attention.head(store, h);
    const DoubleMatrix queries = matmul(tokens, transposed(in_double(views.query))),
                       keys = matmul(tokens, transposed(in_double(views.key)));
    const DoubleMatrix scores = matmul(matmul(queries, in_double(views.score)), transposed(keys));
    const DoubleMatrix& map = circuits[static_cast<std::size_t>(2 + h)].qk_tokens;
    REQUIRE(map.values.size() == scores.values.size());
    for (std::size_t i = 0; i < scores.values.size(); ++i)
      CHECK_THAT(map.values[i], WithinAbs(scores.values[i], 1e-10));
  }
  for (const HeadCircuits& head : head_circuits(additive.model())) {
    CHECK((head.qk_tokens.values.empty() && head.qk_singular_values.empty() && !head.qk_reciprocity));
    for (const char* name : {"qk_tokens", "qk_singular_values", "qk_reciprocity"})
      CHECK_THAT(head.reasons.at(name), ContainsSubstring("not a product of a query"));
    CHECK((head.ov_copying && head.ov_tokens.rows == additive.model().vocabulary()));
  }
}

TEST_CASE("missing circuits are null in JSON", "[inspect]") {
  const DoubleMatrix embedding = random_matrix(3, 4, 1);
  const HeadCircuits circuits = head_circuits(random_head(4, 2, 2), embedding, &embedding);
  const Json json = to_json(circuits);
  CHECK(json["ov_copying"] == *circuits.ov_copying);
  CHECK(json["qk_reciprocity"] == *circuits.qk_reciprocity);
  CHECK(json["ov_singular_values"] == circuits.ov_singular_values);
  CHECK(json["qk_singular_values"] == circuits.qk_singular_values);
  CHECK(json["qk_tokens"][1][2] == circuits.qk_tokens(1, 2));
  CHECK(json["ov_tokens"][2][0] == circuits.ov_tokens(2, 0));
  CHECK(json["reasons"].empty());
  const Json less = to_json(head_circuits(random_head(4, 2, 2), embedding, nullptr));
  CHECK((less["ov_copying"].is_null() && less["ov_tokens"].is_null()));
  CHECK(less["reasons"].contains("ov_tokens"));
}
