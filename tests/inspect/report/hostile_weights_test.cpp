// Weights that are not finite, or so large that results are not finite.
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <limits>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/patch.h"
#include "thimble/train/run.h"

using namespace thimble;

namespace {

// Returns all functions that compute with the weights of a model; generate requires an encoder-decoder.
std::vector<std::pair<const char*, std::function<void(const ModelSource&)>>> uses(const Config& config) {
  std::vector<std::pair<const char*, std::function<void(const ModelSource&)>>> all = {
      {"evaluate", [](const ModelSource& s) { evaluate(s, Split::test); }},
      {"inspect", [](const ModelSource& s) { inspect(s, {.sequences = 8, .examples = 1}); }},
      {"input", [](const ModelSource& s) { trace_input(s, "0 1 2 3"); }},
      {"patch", [](const ModelSource& s) { patch(s, 0, 1); }}};
  if (config.model.kind != ModelKind::encoder) {
    all.pop_back();  // sequences of different lengths
    all.push_back({"write", [](const ModelSource& s) { generate(s, "0 1 2", {}); }});
    all.push_back({"beams", [](const ModelSource& s) { generate(s, "0 1 2", {.beams = 3}); }});
  }
  return all;
}

std::string complaint(const std::function<void(const ModelSource&)>& use, const ModelSource& source) {
  try {
    use(source);
  } catch (const NumericError& e) {
    return e.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("a weight that is not finite is named by every function", "[inspect]") {
  for (const Config& config : {small_config(), writing_config(), recurrent_config(Score::additive)}) {
    Saved saved(config, 1);
    ParameterStore& store = saved.trained.parameters();
    const ParameterStore::Entry& entry = store.entries().back();
    Real& weight = store.values()[entry.offset + 3];
    for (const Real bad : {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()}) {
      weight = bad;
      save_weights(saved.source.weights, store, {});
      for (const auto& [name, use] : uses(config)) {
        CAPTURE(name, bad);
        const std::string message = complaint(use, saved.source);
        CHECK_THAT(message, StartsWith((saved.directory / "weights").string()));
        CHECK_THAT(message, ContainsSubstring(fmt::format(": tensor {}: element 3 is {}", entry.name, bad)));
      }
    }
  }
}

TEST_CASE("finite weights whose results are not are traced to an op and a layer", "[inspect]") {
  for (const Config& config : {small_config(), writing_config(), recurrent_config(Score::additive)}) {
    Saved saved(config, 1);
    ParameterStore& store = saved.trained.parameters();
    for (Real& x : store.values())
      x = x < 0 ? -std::numeric_limits<Real>::max() / 2 : std::numeric_limits<Real>::max() / 2;
    save_weights(saved.source.weights, store, {});
    for (const auto& [name, use] : uses(config)) {
      CAPTURE(name);
      CHECK_THAT(
          complaint(use, saved.source),
          ContainsSubstring("the first value that is not finite is in op ") && ContainsSubstring(", layer "));
    }
  }
}

TEST_CASE("weights are read from regular files of the size in their header", "[inspect]") {
  Saved saved(small_config(), 1);
  ParameterStore& store = saved.trained.parameters();
  const auto refusal = [&](const std::filesystem::path& path) {
    try {
      load_weights(path, store);
    } catch (const CheckpointError& e) {
      return std::string(e.what());
    }
    return std::string("no refusal");
  };
  const std::filesystem::path fifo = saved.directory / "fifo", large = saved.directory / "large";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal(fifo) == fifo.string() + ": cannot be read: Is not a regular file");
  CHECK(refusal("/dev/zero") == "/dev/zero: cannot be read: Is not a regular file");
  // Larger than any memory: a sparse file, and one with a valid header.
  std::ofstream(large).put('\0');
  std::filesystem::resize_file(large, std::uintmax_t{1} << 40);
  CHECK_THAT(refusal(large), ContainsSubstring("large: "));
  std::filesystem::copy_file(saved.source.weights, large, std::filesystem::copy_options::overwrite_existing);
  const std::uintmax_t size = std::filesystem::file_size(large);
  std::filesystem::resize_file(large, size + (std::uintmax_t{1} << 40));
  CHECK_THAT(refusal(large), ContainsSubstring("1099511627776 bytes of data follow the last tensor"));
}
