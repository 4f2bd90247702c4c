// Comparison with reference values, all of which must be met within one bound, absolute or relative.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/hooks.h"
#include "thimble/engine/tape.h"

namespace thimble::tests {

inline constexpr double kBound = sizeof(Real) == sizeof(float) ? 1e-5 : 1e-10;

// "[1, 0, 2]"
inline std::string index_in(const Shape& shape, std::int64_t element) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text = std::to_string(element % shape[d]) + (text.empty() ? "" : ", ") + text;
    element /= shape[d];
  }
  return "[" + text + "]";
}

// Where the first disagreement is, and how many there are; empty when there is none. NaN agrees with nothing.
template <class Actual, class Expected>
std::string disagreement(const Shape& shape, const Actual& actual, const Expected& expected) {
  if (actual.size() != expected.size() || static_cast<std::size_t>(shape.elements()) != expected.size()) {
    return fmt::format("{} values of shape {}, expected {}", actual.size(), shape, expected.size());
  }
  std::string first;
  int count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto value = static_cast<double>(actual[i]), wanted = static_cast<double>(expected[i]);
    if (WithinRel(wanted, kBound).match(value) || WithinAbs(wanted, kBound).match(value)) continue;
    if (count++ > 0) continue;
    first = fmt::format("{}: {:.17g}, expected {:.17g}", index_in(shape, static_cast<std::int64_t>(i)), value,
                        wanted);
  }
  return count > 1 ? fmt::format("{} (the first of {})", first, count) : first;
}

template <class Actual, class Expected>
void compare(const std::string& name, const Shape& shape, const Actual& actual, const Expected& expected) {
  INFO(name);
  CHECK(disagreement(shape, actual, expected) == "");
}

inline std::span<const Real> elements(MatrixView x) {
  REQUIRE(x.contiguous());
  return {x.data, static_cast<std::size_t>(x.elements())};
}

inline void compare_value(const std::string& name, Var x, std::initializer_list<double> expected) {
  compare(name, x.shape(), elements(x.value()), std::span(expected.begin(), expected.size()));
}
inline void compare_gradient(const std::string& name, Var x, std::initializer_list<double> expected) {
  compare("gradient of " + name, x.shape(), elements(x.grad()), std::span(expected.begin(), expected.size()));
}
inline void compare_tensor(const std::string& name, const Tensor& x, std::initializer_list<double> expected) {
  compare(name, x.shape(), x.values(), std::span(expected.begin(), expected.size()));
}

// Keeps the values of every site that a forward pass went through.
class Capture : public Hooks {
 public:
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    values_.insert_or_assign(
        site, Tensor(shape, std::span(value.data, static_cast<std::size_t>(value.elements()))));
  }
  // By default the weights of the only attention.
  const Tensor& value(Site site = {SiteKind::attention_weights}) const { return values_.at(site); }

 private:
  std::map<Site, Tensor> values_;
};

}  // namespace thimble::tests
