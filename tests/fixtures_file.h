// A file of reference values from PyTorch; fixtures/README.md says what each holds.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "fixtures_compare.h"
#include "source_directory.h"
#include "thimble/train/safetensors.h"

namespace thimble::tests {

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : name_(name), file_(source_directory() + "/tests/fixtures/" + name + ".safetensors") {}

  const std::string& setting(const std::string& key) const { return file_.metadata().at(key); }
  double number(const std::string& key) const { return std::stod(setting(key)); }
  std::int64_t integer(const std::string& key) const { return std::stoll(setting(key)); }

  bool has(const std::string& tensor) const { return file_.entries().contains(tensor); }
  const Shape& shape(const std::string& tensor) const { return file_.entry(tensor).shape; }

  Tensor tensor(const std::string& tensor) { return Tensor(shape(tensor), values<Real>(tensor)); }
  std::vector<std::int32_t> integers(const std::string& tensor) {
    const auto wide = values<std::int64_t>(tensor);
    return {wide.begin(), wide.end()};
  }
  std::vector<double> doubles(const std::string& tensor) { return values<double>(tensor); }
  // Empty when the file has none: no padding.
  std::vector<std::int32_t> lengths() {
    return has("lengths") ? integers("lengths") : std::vector<std::int32_t>{};
  }

  template <class Actual>
  void compare(const std::string& tensor, const Shape& actual_shape, const Actual& actual) {
    const std::string where = name_ + ".safetensors: " + tensor;
    CHECK(fmt::format("{} {}", where, actual_shape) == fmt::format("{} {}", where, shape(tensor)));
    tests::compare(where, actual_shape, actual, values<double>(tensor));
  }
  // Elements first .. first + count - 1 of both.
  void compare_part(const std::string& tensor, std::span<const Real> actual, std::size_t first,
                    std::size_t count) {
    const auto expected = values<double>(tensor);
    REQUIRE(expected.size() == actual.size());
    tests::compare(fmt::format("{}.safetensors: {} from {}", name_, tensor, first),
                   {static_cast<std::int64_t>(count)}, actual.subspan(first, count),
                   std::span(expected).subspan(first, count));
  }
  void compare_value(const std::string& tensor, Var x) { compare(tensor, x.shape(), elements(x.value())); }
  void compare_gradient(const std::string& tensor, Var x) {
    compare("d_" + tensor, x.shape(), elements(x.grad()));
  }

  // Runs backward from y with the file's cotangent.
  void backward(const std::string& tensor, Var y) {
    const Tensor cotangent = this->tensor("d_" + tensor);
    y.tape().backward(y, cotangent.matrix());
  }

  // Gives every parameter of the store its tensor, whose name is the parameter's with `prefix` in place of
  // `module`. Throws CheckpointError when there is none.
  void load(ParameterStore& store, const std::string& prefix, const std::string& module = "") {
    for (const auto& entry : store.entries()) {
      const std::string tensor = tensor_name(entry, prefix, module);
      INFO(name_ << ".safetensors: " << tensor);
      REQUIRE(entry.shape == shape(tensor));
      std::ranges::copy(values<Real>(tensor),
                        store.values().begin() + static_cast<std::ptrdiff_t>(entry.offset));
    }
  }

  // Compares a buffer with the layout of the store, parameter by parameter, with the tensors of such names.
  void compare_parameters(const ParameterStore& store, std::span<const Real> flat, const std::string& prefix,
                          const std::string& module = "") {
    for (const auto& entry : store.entries()) {
      compare(tensor_name(entry, prefix, module), entry.shape, flat.subspan(entry.offset, entry.size()));
    }
  }

  // Nothing in the file was left out.
  void check_all_used() const {
    for (const auto& [tensor, entry] : file_.entries()) {
      INFO(name_ << ".safetensors: " << tensor);
      CHECK(used_.contains(tensor));
    }
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& tensor) {
    used_.insert(tensor);
    return file_.values<T>(tensor);
  }

  static std::string tensor_name(const ParameterStore::Entry& entry, const std::string& prefix,
                                 const std::string& module) {
    REQUIRE(entry.name.starts_with(module));
    return prefix + entry.name.substr(module.size());
  }

  std::string name_;
  SafetensorsFile file_;
  std::set<std::string> used_;
};

}  // namespace thimble::tests
