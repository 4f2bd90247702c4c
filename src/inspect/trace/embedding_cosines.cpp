#include "inspect/trace/embedding_cosines.h"

#include <cmath>
#include <numeric>

#include "thimble/inspect/forward_trace.h"
#include "thimble/train/run.h"
#include "thimble/train/safetensors.h"

namespace thimble {

Json embedding_cosines(const ModelSource& model) {
  const Names names = vocabulary(model);
  const std::vector<double> rows = model.open()->values<double>("token_embedding.weight");
  const std::size_t width = rows.size() / names.size();
  const auto product = [&](std::size_t a, std::size_t b) {
    const auto row = [&](std::size_t i) { return rows.begin() + static_cast<std::ptrdiff_t>(i * width); };
    return std::inner_product(row(a), row(a + 1), row(b), 0.0);
  };
  Json json = Json::object();
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = 0; b < names.size(); ++b) {
      const double lengths = std::sqrt(product(a, a) * product(b, b));
      json[names[a]][names[b]] = lengths > 0 ? product(a, b) / lengths : 0;
    }
  return json;
}

}  // namespace thimble
