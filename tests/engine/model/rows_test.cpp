// Logits of some positions: the same numbers and the same gradients as from all of them.
#include <vector>

#include "catch.h"
#include "engine/model/transformer.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

ModelConfig model_config(NormOrder norm, double dropout) {
  ModelConfig config;
  config.d_model = 16;
  config.heads = 2;
  config.layers = 2;
  config.d_ff = 24;
  config.norm = norm;
  config.dropout = dropout;
  config.output.hidden = 12;
  return config;
}

constexpr double kTolerance = sizeof(Real) == 8 ? 1e-12 : 1e-5;

void check_close(std::span<const Real> a, std::span<const Real> b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  CHECK(worst < kTolerance);
}

}  // namespace

TEST_CASE("logits of chosen positions are those of all positions, and so are their gradients", "[model]") {
  for (const NormOrder norm : {NormOrder::pre, NormOrder::post}) {
    for (const double dropout : {0.0, 0.3}) {
      CAPTURE(norm, dropout);
      Transformer model(model_config(norm, dropout), {7, 5});
      model.init(1);
      const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 0, 1, 2, 3}, rows{1, 4, 5, 9};
      const std::vector<std::int32_t> labels{-1, 3, -1, -1, 2, 0, -1, -1, -1, 6}, row_labels{3, 2, 0, 6};
      const ForwardOptions options{.training = true, .seed = 3, .step = 2};
      AlignedVector<Real> from_all(model.parameters().size()), from_rows(model.parameters().size());

      Tape all, some;
      all.bind(model.parameters(), from_all);
      some.bind(model.parameters(), from_rows);
      const Var y = model(all, {.tokens = tokens, .length = 5}, options),
                chosen = model(some, {.tokens = tokens, .length = 5, .rows = rows}, options);
      REQUIRE(chosen.shape() == Shape{4, 7});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        check_close({y.value().row(rows[i]), 7}, {chosen.value().row(static_cast<std::int64_t>(i)), 7});
      }
      all.backward(cross_entropy(y, labels));
      some.backward(cross_entropy(chosen, row_labels));
      check_close(from_all, from_rows);
    }
  }
}

TEST_CASE("positions can be chosen only where there are outputs for them", "[model]") {
  ModelConfig config = model_config(NormOrder::pre, 0);
  Transformer model(config, {7, 5});
  config.output.per = OutputPer::sequence;
  Transformer pooled(config, {7, 5});
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5}, rows{1}, outside{5};
  Tape tape;
  tape.bind(model.parameters(), {});
  CHECK_THROWS_WITH(model(tape, {.tokens = tokens, .length = 5, .rows = outside}, {}),
                    ContainsSubstring("select_rows: row 5"));
  tape.bind(pooled.parameters(), {});
  CHECK_THROWS_AS(pooled(tape, {.tokens = tokens, .length = 5, .rows = rows}, {}), ShapeError);
}
