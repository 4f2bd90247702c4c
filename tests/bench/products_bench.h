// Registers the products of a model's linear layers; see products_bench.cpp.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <span>
#include <string>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace bench {

struct Layer {
  const char* name;  // with a slash in front
  std::int64_t in, out;
};

// `rows`: tokens of a micro-batch.
void add_products(const std::string& model, std::int64_t rows, std::span<const Layer> layers);

}  // namespace bench
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
