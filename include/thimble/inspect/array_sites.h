// Sites of a forward pass by name. B sequences, T tokens, S tokens of a source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/engine/hooks.h"
#include "thimble/engine/model_config.h"

namespace thimble {

// The scale of a norm: sqrt(mean of (x - m)^2 + epsilon) of its input x (`columns`), where m is the mean of x, or 0 of an
// RMS norm.
struct NormScale {
  std::int64_t columns;
  bool rms;
  double epsilon;
};

// A site by its name, which is TransformerLens' where that has it.
struct ArraySite {
  std::string name;
  std::string meaning;
  Site site;
  std::int64_t first = 0;            // column of the site's value
  std::int64_t heads = 0;            // 0: one block of columns, (B, T, columns); else (B, T, heads, columns)
  std::int64_t columns = 0;          // of attention weights and scores 0: (B, heads, queries, keys)
  bool of_source = false;            // whether rows are positions of the source
  bool keys_of_source = false;       // of attention weights and scores
  bool per_sequence = false;         // (B, columns)
  std::optional<NormScale> scale{};  // (B, T, 1): follows from the site's value, and cannot be replaced

  // Whether each head has a map, of attention weights or scores.
  bool is_map() const {
    return site.kind == SiteKind::attention_weights || site.kind == SiteKind::attention_scores;
  }

  std::string shape() const;  // "(B, T, 2, 16)"
};

// Returns the sites of a model with that many outputs, in the order of a forward pass.
std::vector<ArraySite> array_sites(const ModelConfig&, std::int64_t outputs);

}  // namespace thimble
