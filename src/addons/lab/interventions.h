// Interventions on the heads of a pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "thimble/engine/model.h"
#include "thimble/train/json.h"
#include "train/step/chunk_hooks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// What happens to the heads of one pass, and what is read from it.
class Interventions : public ChunkHooks {
 public:
  struct Row {
    HeadId head;
    std::int64_t query = 0;
    std::vector<double> weights;
  };
  using Outputs = std::map<Site, std::vector<std::vector<Real>>>;  // rows by position, by site

  std::vector<Row> rows;
  std::vector<std::unique_ptr<Replace>> heads;  // of head outputs, in this order
  Outputs outputs, projections;                 // of this pass

  bool replace(Site site, const Shape& shape, MatrixView value) override;
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
};

// Returns hooks that replace the output of a head by that of another pass, at the positions that both have.
std::unique_ptr<Replace> patch_head(std::span<const AttentionLayer> layers, HeadId head,
                                    Interventions::Outputs donor);

// Returns {"head", "token", "query", "key", "value", "dots", "scale"}: the vectors of a head of
// self-attention at a token, and the products of its query with all keys. Throws ConfigError where the head
// has no projections of its tokens.
Json vectors_of(const Model& model, const Interventions::Outputs& projections, HeadId id, std::int64_t token);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
