// The order of cumulative ablation.
#include "catch.h"
#include "inspect/interventions.h"

using namespace thimble;

namespace {

// Scales the output of a head.
void scale_head(Trained& trained, HeadId id, Real factor) {
  const ConstMatrixView weight = trained.attention(id.layer).head(trained.parameters(), id.head).output;
  const std::int64_t first = weight.data - trained.parameters().values().data();
  for (std::int64_t row = 0; row < weight.rows; ++row)
    for (std::int64_t c = 0; c < weight.cols; ++c)
      trained.parameters().values()[static_cast<std::size_t>(first + row * weight.stride + c)] *= factor;
}

}  // namespace

TEST_CASE("heads are removed by their importance within their layer", "[inspect]") {
  Trained trained(rich_config());
  scale_head(trained, {0, 1}, Real(0.05));              // by far the least important of its layer
  for (const HeadId id : {HeadId{1, 0}, HeadId{1, 1}})  // both of little effect
    scale_head(trained, id, Real(1e-4));
  trained.give();
  const EffectsReport report = measure_effects(trained.evaluator);
  const auto of = [&](std::int64_t layer, std::int64_t head) {
    return effects_of(report, {layer, head}).importance;
  };
  REQUIRE(of(0, 1).normalized < std::min(of(1, 0).normalized, of(1, 1).normalized));
  REQUIRE(of(0, 1).raw > 10 * std::max(of(1, 0).raw, of(1, 1).raw));
  CHECK((report.cumulative_ablation[1].id == HeadId{0, 1}));
}
