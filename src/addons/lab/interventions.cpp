#include "addons/lab/interventions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inspect/effects/head_names.h"
#include "inspect/effects/replace_heads.h"
#include "thimble/engine/attention.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

bool Interventions::replace(Site site, const Shape& shape, MatrixView value) {
  bool replaced = false;
  if (site.kind == SiteKind::attention_weights) {
    const std::int64_t queries = shape[2];
    for (const Row& row : rows) {
      const std::int64_t query = row.query - site.position;
      if (row.head.layer != site.layer || query < 0 || query >= queries) continue;
      Real* to = value.row(row.head.head * queries + query);
      std::ranges::transform(row.weights, to, [](double x) { return static_cast<Real>(x); });
      replaced = true;
    }
  }
  for (const auto& head : heads) replaced |= head->may_replace(site) && head->replace(site, shape, value);
  return replaced;
}

void Interventions::observe(Site site, const Shape&, ConstMatrixView value) {
  if (site.kind != SiteKind::head_output && site.kind != SiteKind::projections) return;
  auto& all = (site.kind == SiteKind::head_output ? outputs : projections)[site.start()];
  for (std::int64_t row = 0; row < value.rows; ++row)
    all.emplace_back(value.row(row), value.row(row) + value.cols);
}

std::unique_ptr<Replace> patch_head(std::span<const AttentionLayer> layers, HeadId head,
                                    Interventions::Outputs donor) {
  return replace_heads(layers, {&head, 1}, [donor = std::move(donor)](const HeadRow& own) {
    const auto found = donor.find({SiteKind::head_output, static_cast<std::int32_t>(own.layer)});
    const bool has_row = found != donor.end() && own.position < std::ssize(found->second);
    return has_row ? found->second[static_cast<std::size_t>(own.position)].data() : own.values;
  });
}

Json vectors_of(const Model& model, const Interventions::Outputs& projections, HeadId id,
                std::int64_t token) {
  const AttentionLayer& layer = model.attention_layers()[static_cast<std::size_t>(id.layer)];
  const MultiHeadAttention* module = model.attention(layer);
  const auto found = projections.find(Site{SiteKind::projections, static_cast<std::int32_t>(id.layer)});
  require<ConfigError>(
      module != nullptr && module->config.in_proj && found != projections.end(),
      "vectors: head {} has no projections of its own tokens; choose a head of self-attention",
      head_name(model.attention_layers(), id));
  const std::vector<std::vector<Real>>& rows = found->second;
  require<ConfigError>(token >= 0 && token < std::ssize(rows), "vectors: token {} must be from 0 to {}",
                       token, std::ssize(rows) - 1);
  const AttentionSizes& sizes = module->sizes;
  const std::int64_t kv = id.head / sizes.heads_per_kv_head();
  const std::int64_t first_key = sizes.heads * sizes.d_key,
                     first_value = first_key + sizes.kv_heads * sizes.d_key;
  const auto part = [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    const auto begin = rows[static_cast<std::size_t>(row)].begin() + first;
    return std::vector<double>(begin, begin + count);
  };
  const std::vector<double> query = part(token, id.head * sizes.d_key, sizes.d_key);
  Json dots = Json::array();
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
    const std::vector<double> key = part(row, first_key + kv * sizes.d_key, sizes.d_key);
    dots.push_back(std::inner_product(key.begin(), key.end(), query.begin(), 0.0));
  }
  Json json{{"head", head_name(model.attention_layers(), id)},
            {"token", token},
            {"query", query},
            {"key", part(token, first_key + kv * sizes.d_key, sizes.d_key)},
            {"value", part(token, first_value + kv * sizes.d_value, sizes.d_value)},
            {"dots", std::move(dots)}};
  const ScoreKind& score = kind_of(module->config.score);
  if (score.product && score.parameter == ScoreKind::Parameter::none)
    json["scale"] = score.scaled ? 1 / std::sqrt(static_cast<double>(sizes.d_key)) : 1;
  return json;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
