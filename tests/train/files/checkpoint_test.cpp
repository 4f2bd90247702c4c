#include "train/files/checkpoint.h"

#include <string>
#include <vector>

#include "catch.h"
#include "engine/model/transformer.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/safetensors.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

struct Store {
  ParameterStore store;
  Parameter a = store.add("a", {2, 3}), b = store.add("b", {5}), c = store.add("c", {});

  explicit Store(std::uint64_t seed) {
    for (const Parameter p : {a, b, c}) init_normal(store, p, seed, 1);
  }
};

// Returns the message of load_weights, which must leave the store unchanged.
std::string complaint(const std::filesystem::path& path, ParameterStore& store) {
  const std::string before = store.hash();
  try {
    load_weights(path, store);
  } catch (const CheckpointError& e) {
    CHECK(store.hash() == before);
    return e.what();
  }
  return "loaded";
}

// A file of these tensors, all of them ones.
void write_ones(const std::filesystem::path& path,
                const std::vector<std::pair<std::string, Shape>>& tensors) {
  const std::vector<float> ones(1000, 1);
  std::vector<NamedBytes> named;
  for (const auto& [name, shape] : tensors) {
    named.push_back({name, DType::f32, shape,
                     std::as_bytes(std::span(ones).first(static_cast<std::size_t>(shape.elements())))});
  }
  write_safetensors(path, named, {});
}

}  // namespace

TEST_CASE("saved weights load again, bit by bit", "[train]") {
  const TemporaryDirectory directory;
  const Store saved(1);
  save_weights(directory / "weights", saved.store, {{"step", "7"}});
  Store loaded(2);
  CHECK(loaded.store.hash() != saved.store.hash());
  CHECK(complaint(directory / "weights", loaded.store) == "loaded");
  CHECK(loaded.store.hash() == saved.store.hash());
  const SafetensorsFile file(directory / "weights");
  CHECK(file.metadata().at("step") == "7");
  CHECK(file.entry("a").shape == Shape{2, 3});
  CHECK(file.entry("c").shape == Shape{});
  CHECK(file.entry("a").dtype == (sizeof(Real) == 8 ? DType::f64 : DType::f32));
  CHECK(directory.files() == 1);
}

TEST_CASE("weights of the other precision are converted", "[train]") {
  const TemporaryDirectory directory;
  const std::vector<double> doubles{0.1, 0.2, 0.3, 0.4, 0.5, 1e-50};
  const std::vector<float> floats{1.5f, 2, 3, 4, 5};
  const std::vector<std::int64_t> whole{-7};
  write_safetensors(directory / "weights",
                    std::vector<NamedBytes>{{"b", DType::f32, {5}, std::as_bytes(std::span(floats))},
                                            {"a", DType::f64, {2, 3}, std::as_bytes(std::span(doubles))},
                                            {"c", DType::i64, {}, std::as_bytes(std::span(whole))}},
                    {});
  Store loaded(2);
  load_weights(directory / "weights", loaded.store);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(loaded.store.values(loaded.a)[i] == static_cast<Real>(doubles[i]));
  for (std::size_t i = 0; i < 5; ++i) CHECK(loaded.store.values(loaded.b)[i] == static_cast<Real>(floats[i]));
  CHECK(loaded.store.values(loaded.c)[0] == -7);
}

TEST_CASE("weights that do not fit are refused, named, and nothing is loaded", "[train]") {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "weights";
  Store store(1);
  write_ones(path, {{"a", {2, 3}}, {"c", {}}});
  CHECK(complaint(path, store.store) == path.string() + ": there is no tensor b");
  write_ones(path, {{"a", {2, 3}}, {"b", {5}}, {"c", {}}, {"d", {1}}});
  CHECK_THAT(complaint(path, store.store), StartsWith(path.string() + ": unexpected tensor d;"));
  write_ones(path, {{"a", {3, 2}}, {"b", {5}}, {"c", {}}});
  CHECK(complaint(path, store.store) ==
        path.string() + ": tensor a has shape (3, 2), the model requires (2, 3)");
  write_ones(path, {{"a", {2, 3}}, {"b", {5}}, {"c", {1}}});
  CHECK(complaint(path, store.store) == path.string() + ": tensor c has shape (1), the model requires ()");
  const std::vector<float> ones(6, 1);
  const std::vector<std::uint8_t> bytes(5, 1);
  write_safetensors(path,
                    std::vector<NamedBytes>{{"a", DType::f32, {2, 3}, std::as_bytes(std::span(ones))},
                                            {"b", DType::u8, {5}, std::as_bytes(std::span(bytes))},
                                            {"c", DType::f32, {}, std::as_bytes(std::span(ones).first(1))}},
                    {});
  CHECK_THAT(complaint(path, store.store), StartsWith(path.string() + ": tensor b: elements of type U8"));
  write_file(path, "no weights at all");
  CHECK_THAT(complaint(path, store.store), StartsWith(path.string() + ": the header size"));
  CHECK_THAT(complaint(directory / "missing", store.store),
             StartsWith((directory / "missing").string() + ": cannot be read"));
  write_ones(path, {{"a", {2, 3}}, {"b", {5}}, {"c", {}}});
  CHECK(complaint(path, store.store) == "loaded");
  CHECK(store.store.values(store.b)[4] == 1);
}

TEST_CASE("a whole model survives saving and loading", "[train]") {
  const TemporaryDirectory directory;
  ModelConfig config;
  config.layers = 2;
  config.norm = NormOrder::pre;
  config.positions = Positions::learned;
  Transformer first(config, {7, 5}), second(config, {7, 5}), other_length(config, {7, 6});
  first.init(1);
  second.init(2);
  save_weights(directory / "weights", first.parameters(), {});
  load_weights(directory / "weights", second.parameters());
  CHECK(second.parameters().hash() == first.parameters().hash());
  CHECK_THAT(
      complaint(directory / "weights", other_length.parameters()),
      ContainsSubstring("tensor position_embedding.weight has shape (5, 32), the model requires (6, 32)"));
}

TEST_CASE("a checkpoint names the optimizer's moments as PyTorch does", "[train]") {
  const TemporaryDirectory directory;
  Store store(1);
  std::vector<Real> gradients(store.store.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<Real>(1 + i);
  const auto saved = [&](const OptimizerConfig& config) {
    Optimizer optimizer(config, store.store);
    optimizer.begin_step(0.1, 1);
    for (const Optimizer::Segment& segment : optimizer.segments())
      optimizer.update(segment, store.store.values(), gradients);
    save_weights(directory / "checkpoint", store.store, {}, &optimizer);
    return SafetensorsFile(directory / "checkpoint");
  };
  const auto expect = [&](const SafetensorsFile& file, const std::string& moment, const auto& of_gradient) {
    for (const auto& entry : store.store.entries()) {
      const std::vector<Real> values = file.values<Real>(fmt::format("optimizer.{}.{}", moment, entry.name));
      REQUIRE(values.size() == entry.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK_THAT(double(values[i]), WithinRel(of_gradient(double(gradients[entry.offset + i])), 1e-5));
    }
  };
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const SafetensorsFile file = saved({.name = kind, .beta1 = 0.8, .beta2 = 0.95});
    expect(file, "exp_avg", [](double g) { return 0.2 * g; });
    expect(file, "exp_avg_sq", [](double g) { return 0.05 * g * g; });
    CHECK(file.entries().size() == 9);
  }
  const SafetensorsFile file = saved({.name = OptimizerKind::sgd});
  expect(file, "momentum_buffer", [](double g) { return g; });
  CHECK(file.entries().size() == 6);
}
