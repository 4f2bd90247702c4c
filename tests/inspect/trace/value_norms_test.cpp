// Lengths of values after the output projection, by plain loops over what a pass of one sequence holds.
#include <cmath>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"

using namespace thimble;

namespace {

// Returns the lengths (H, keys) of a layer. Requires that the values are those that its heads mix.
std::vector<double> lengths_of(const Model& model, const SiteRecorder& seen, std::size_t l,
                               std::size_t keys) {
  const AttentionLayer& layer = model.attention_layers()[l];
  const MultiHeadAttention& attention = *model.attention(layer);
  const auto heads = static_cast<std::size_t>(layer.heads), size = static_cast<std::size_t>(layer.d_value);
  const auto shared = heads / static_cast<std::size_t>(attention.sizes.kv_heads);
  const auto at = static_cast<std::int32_t>(l);
  const std::vector<double>& projected =
      seen.seen.at({layer.cross() ? SiteKind::cross_keys_values : SiteKind::projections, at});
  const std::vector<double>& weights = seen.seen.at({SiteKind::attention_weights, at});
  const std::vector<double>& mixed = seen.seen.at({SiteKind::head_output, at});
  const std::size_t width = projected.size() / keys, values = heads / shared * size;
  const bool is_sum = attention.config.combine == Combine::sum;
  std::vector<double> lengths;
  for (std::size_t h = 0; h < heads; ++h) {
    const auto value = [&](std::size_t key, std::size_t d) {
      return projected[key * width + width - values + h / shared * size + d];
    };
    const auto output = model.parameters().values(attention.out_proj_weights[is_sum ? h : 0]);
    const std::size_t columns = is_sum ? size : heads * size, before = is_sum ? 0 : h * size;
    for (std::size_t key = 0; key < keys; ++key) {
      double square = 0;
      for (std::size_t c = 0; c < output.size() / columns; ++c) {
        double sum = 0;
        for (std::size_t d = 0; d < size; ++d)
          sum += static_cast<double>(output[c * columns + before + d]) * value(key, d);
        square += sum * sum;
      }
      lengths.push_back(std::sqrt(square));
    }
    const std::size_t queries = weights.size() / heads / keys;
    for (std::size_t q = 0; q < queries; ++q)
      for (std::size_t d = 0; d < size; ++d) {
        double sum = 0;
        for (std::size_t key = 0; key < keys; ++key)
          sum += weights[(h * queries + q) * keys + key] * value(key, d);
        const double expected = mixed[(q * heads + h) * size + d];
        REQUIRE_THAT(sum, WithinRel(expected, 1e-3) || WithinAbs(expected, 1e-4));
      }
  }
  return lengths;
}

void expect_lengths(const Model& model, const ForwardTrace& trace, const Batch& batch) {
  const SiteRecorder seen = pass_over(model, batch);
  REQUIRE(trace.value_norms.size() == model.attention_layers().size());
  for (std::size_t l = 0; l < trace.value_norms.size(); ++l) {
    const AttentionLayer& layer = model.attention_layers()[l];
    const DoubleMatrix& norms = trace.value_norms[l];
    REQUIRE(norms.rows == layer.heads);
    REQUIRE(norms.cols == trace.keys(layer));
    const std::int64_t keys = layer.keys_source ? batch.source_length : batch.length;  // with padding
    const std::vector<double> expected = lengths_of(model, seen, l, static_cast<std::size_t>(keys));
    for (std::int64_t h = 0; h < norms.rows; ++h)
      for (std::int64_t key = 0; key < norms.cols; ++key) {
        const double length = expected[static_cast<std::size_t>(h * keys + key)];
        CHECK_THAT(norms(h, key), WithinRel(length, 1e-3) || WithinAbs(length, 1e-5));
      }
  }
}

}  // namespace

TEST_CASE("examples have the lengths of projected values, of shared and of crossed keys too", "[inspect]") {
  std::vector<Config> configs = configs_of_heads(small_config());
  for (const Config& base : {rich_config(), deep_config()}) configs.push_back(base);
  for (const Config& config : configs_of_heads(deep_config())) configs.push_back(config);
  for (Config& config : configs) {
    config.model.attention.score = Score::scaled_dot;  // inspect() refuses linear scores
    const SavedModel saved(config);
    const InspectReport report = inspect(saved.source, {.sequences = 12, .examples = 5});
    REQUIRE(report.examples.size() == 5);
    for (std::size_t i = 0; i < report.examples.size(); ++i) {
      Batch batch;
      saved.trainer.dataset().fill(Split::test, static_cast<std::int64_t>(i), 1, batch);
      expect_lengths(saved.trainer.model(), report.examples[i], batch);
    }
    const ForwardTrace own = trace_input(saved.source, "1 0 2");
    REQUIRE(own.value_norms.size() == saved.trainer.model().attention_layers().size());
    const Json json = to_json(own, config.model, vocabulary(saved.source));
    const DoubleMatrix& last = own.value_norms.back();
    CHECK(json["value_norms"].back()[1][2] == last(1, 2));
  }
}

TEST_CASE("a recurrent model has no lengths of values", "[inspect]") {
  const SavedModel saved(recurrent_config(Score::additive));
  const ForwardTrace own = trace_input(saved.source, "1 0 2");
  CHECK(own.value_norms.empty());
  CHECK_FALSE(to_json(own, saved.source.config.model, vocabulary(saved.source)).contains("value_norms"));
}
