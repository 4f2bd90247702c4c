// Arrays of forward passes, against the evaluator and against the passes of a model.
#include "thimble/inspect/arrays.h"

#include <cmath>
#include <cstring>
#include <map>

#include "catch.h"
#include "inspect/saved_model.h"
#include "thimble/engine/error.h"
#include "train/step/evaluator.h"

using namespace thimble;

namespace {

using Values = std::map<std::string, std::vector<Real>>;

// Returns all arrays of a request, put together, and the number of replies.
std::pair<Values, int> arrays_of(ModelArrays& model, const ArrayRequest& request) {
  Values all;
  int replies = 0;
  std::int64_t next = 0;
  model.forward(request, [&](const ArrayReply& reply) {
    CHECK(reply.first == next);
    next = reply.last;
    CHECK(reply.is_last == (next == request.batch.sequences));
    ++replies;
    for (const NamedBytes& array : reply.arrays) {
      if (array.name == "loss") continue;
      std::vector<Real>& to = all[array.name];
      const std::size_t before = to.size();
      to.resize(before + array.bytes.size() / sizeof(Real));
      std::memcpy(to.data() + before, array.bytes.data(), array.bytes.size());
    }
  });
  CHECK(next == request.batch.sequences);
  return {all, replies};
}

std::vector<Config> all_kinds() {
  std::vector<Config> configs{small_config(), writing_config(), recurrent_config(Score::additive),
                              recurrent_config(Score::scaled_dot)};
  for (const Config& config : configs_of_heads(small_config())) configs.push_back(config);
  Config sequence = small_config(), modern = small_config(), convolution = small_config();
  sequence.task = {.name = "anomaly", .symbols = 64, .length = 6};
  sequence.model.output.per = OutputPer::sequence;
  modern.model.norm = NormOrder::pre;
  modern.model.norm_type = NormType::rms;
  modern.model.positions = Positions::rotary;
  modern.model.gated = true;
  modern.model.layers = 2;
  modern.model.output.hidden = 0;
  modern.task.min_length = 2;
  convolution.model.mixer = Mixer::convolution;
  configs.insert(configs.end(), {sequence, modern, convolution});
  for (Config& config : configs) config.data.test = 150;
  return configs;
}

// Returns the first test sequences with their labels.
Batch test_batch(const ModelArrays& model, std::int64_t count) {
  Batch batch;
  model.dataset().fill(Split::test, 0, count, batch);
  return batch;
}

}  // namespace

TEST_CASE("logits at labels have the bits of the evaluator, watched or not", "[arrays]") {
  for (const Config& config : all_kinds()) {
    const SavedModel saved(config);
    const std::unique_ptr<ModelArrays> model = open_arrays(saved.source);
    const Batch batch = test_batch(*model, 150);
    const auto [all, replies] = arrays_of(*model, {.batch = batch, .sites = {"*"}, .gradients = {"*"}});
    const auto [alone, one] = arrays_of(*model, {.batch = batch, .sites = {"logits"}});
    CAPTURE(config.task.name, replies);
    CHECK(replies > 1);
    const std::vector<Real>&logits = all.at("logits"), &unwatched = alone.at("logits");
    CHECK(std::memcmp(logits.data(), unwatched.data(), logits.size() * sizeof(Real)) == 0);
    for (const ArraySite& site : model->sites()) {
      CAPTURE(site.name);
      CHECK(all.contains("gradient." + site.name) == !site.scale.has_value());
      if (!site.scale) CHECK(all.at(site.name).size() == all.at("gradient." + site.name).size());
    }
    for (const auto& [name, shape] : model->parameters())
      CHECK(std::ssize(all.at("gradient." + name)) == shape.elements());

    Evaluator evaluator(saved.source.config, *saved.source.open());
    evaluator.select(Split::test, 150);
    const auto width = static_cast<std::size_t>(evaluator.model().outputs());
    std::size_t compared = 0;
    evaluator.each(evaluator.chunks().size(), [&](std::size_t i, Tape& tape) {
      const Chunk& chunk = evaluator.chunks()[i];
      const MatrixView z = evaluator.model()(tape, labeled_input(chunk.batch), {}).value();
      const auto per_sequence = static_cast<std::int64_t>(chunk.batch.labels.size()) / chunk.batch.sequences;
      for (std::size_t r = 0; r < chunk.batch.rows.size(); ++r) {
        const auto row = static_cast<std::size_t>(chunk.first * per_sequence + chunk.batch.rows[r]);
        compared += std::memcmp(logits.data() + row * width, z.row(static_cast<std::int64_t>(r)),
                                width * sizeof(Real)) == 0
                        ? 1
                        : 0;
      }
    });
    CHECK(compared == batch.rows.size());
  }
}

TEST_CASE("values that replace themselves change nothing, and others only what follows", "[arrays]") {
  for (const Config& config : all_kinds()) {
    const SavedModel saved(config);
    const std::unique_ptr<ModelArrays> model = open_arrays(saved.source);
    const Batch batch = test_batch(*model, 100);
    const Values all = arrays_of(*model, {.batch = batch, .sites = {"*"}}).first;
    for (const ArraySite& site : model->sites()) {
      CAPTURE(config.task.name, site.name);
      if (site.scale) continue;
      std::vector<Real> values = all.at(site.name);
      for (Real& x : values)
        if (std::isnan(x)) x = 0;
      Shape shape{100};
      if (!site.per_sequence) {
        const std::int64_t rows = site.of_source ? batch.source_length : batch.length,
                           keys = site.keys_of_source ? batch.source_length : batch.length;
        if (site.is_map())
          shape = {100, site.heads, rows, keys};
        else
          shape =
              site.heads > 0 ? Shape{100, rows, site.heads, site.columns} : Shape{100, rows, site.columns};
      } else {
        shape = shape.appended(site.columns);
      }
      const NamedBytes array{"x", sizeof(Real) == 4 ? DType::f32 : DType::f64, shape,
                             std::as_bytes(std::span(values))};
      std::string content = safetensors_header({&array, 1}, {});
      content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Real));
      const SafetensorsFile file(content, "test");
      const Values same =
          arrays_of(*model,
                    {.batch = batch, .sites = {"logits"}, .replace = {{site.name, "x"}}, .arrays = &file})
              .first;
      const Values zero =
          arrays_of(*model, {.batch = batch, .sites = {"logits", site.name}, .replace = {{site.name}}}).first;
      const std::vector<Real>& before = all.at("logits");
      bool equal = true, differs = false;
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (std::isnan(before[i])) continue;
        equal &= before[i] == same.at("logits")[i];
        differs |= before[i] != zero.at("logits")[i];
      }
      CHECK(equal);
      CHECK(differs);
      CHECK(std::ranges::all_of(zero.at(site.name), [](Real x) { return x == 0 || std::isnan(x); }));
    }
  }
}

TEST_CASE("a model is also as its training began", "[arrays]") {
  const SavedModel before(small_config(), 0), after(small_config(), 5);
  const auto logits = [](const SavedModel& saved, bool trained) {
    const std::unique_ptr<ModelArrays> model = open_arrays(saved.source, trained);
    return arrays_of(*model, {.batch = test_batch(*model, 3), .sites = {"logits"}}).first.at("logits");
  };
  CHECK(logits(after, false) == logits(before, true));
  CHECK(logits(after, true) != logits(before, true));
}

TEST_CASE("a request that does not fit the model is refused", "[arrays]") {
  const SavedModel saved(small_config());
  const std::unique_ptr<ModelArrays> model = open_arrays(saved.source);
  const Batch batch = test_batch(*model, 3);
  const auto problem = [&](ArrayRequest request) -> std::string {
    try {
      arrays_of(*model, request);
    } catch (const DataError& e) {
      return e.what();
    }
    return "none";
  };
  CHECK(problem({.batch = batch, .sites = {"hook_patern"}}) ==
        "there is no site hook_patern, did you mean *hook_pattern?");
  CHECK(problem({.batch = batch, .sites = {"logits"}, .replace = {{.site = "logits", .heads = {{0}}}}}) ==
        "replace logits: has no heads; leave them out");
  CHECK(problem({.batch = batch,
                 .sites = {"logits"},
                 .replace = {{.site = "blocks.0.attn.hook_z", .heads = {{2}}}}}) ==
        "replace blocks.0.attn.hook_z: head 2; there are 0 to 1");
  CHECK(problem({.batch = batch, .sites = {"logits"}, .replace = {{"logits", "x"}}}) ==
        "there is no array x");
  Batch wrong = batch;
  wrong.tokens[1] = 6;
  CHECK(problem({.batch = wrong, .sites = {"logits"}}) ==
        "ids: token 6 at (0, 1); the vocabulary has 0 to 5");
  wrong = batch;
  wrong.lengths[2] = 5;
  CHECK(problem({.batch = wrong, .sites = {"logits"}}) ==
        "ids: sequence 2 has length 5; it must be from 1 to 4");
  wrong = batch;
  wrong.labels.clear();
  CHECK(problem({.batch = wrong, .sites = {}, .gradients = {"logits"}}) ==
        "gradients: of the mean loss need labels; or give a cotangent of the logits");
  CHECK(problem({.batch = batch, .sites = {"logits", "*resid*"}}) == "none");
}
