// The order in which heads are removed.
#include "catch.h"
#include "inspect/interventions.h"

using namespace thimble;

namespace {

// Scales what a head adds to the residual stream.
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
  scale_head(trained, {0, 1}, Real(0.05));              // the least of its layer, by far
  for (const HeadId id : {HeadId{1, 0}, HeadId{1, 1}})  // both of little effect
    scale_head(trained, id, Real(1e-4));
  trained.give();
  const EffectsReport report = measure_effects(trained.evaluator);
  const auto of = [&](std::size_t head) { return report.heads[head].importance; };
  REQUIRE(of(1).normalized < std::min(of(2).normalized, of(3).normalized));
  REQUIRE(of(1).raw > 10 * std::max(of(2).raw, of(3).raw));
  CHECK((report.cumulative_ablation[1].id == HeadId{0, 1}));
}
