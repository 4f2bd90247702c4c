// Traces and arrays of an encoder-decoder, against its forward passes.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/saved_model.h"
#include "rounding.h"
#include "thimble/engine/decoding.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"

using namespace thimble;

TEST_CASE("a trace of the user's source has the greedy output and its attention", "[inspect]") {
  const Saved saved(writing_config(), 150);
  const Model& model = saved.trained.trainer.model();
  const Dataset& data = saved.trained.trainer.dataset();
  for (const std::vector<std::int32_t>& source : {std::vector<std::int32_t>{3, 1}, {0, 4, 2, 2}}) {
    Batch batch;
    batch.sequences = 1;
    batch.sources = source;
    batch.source_length = std::ssize(source);
    batch.source_lengths = {static_cast<std::int32_t>(source.size())};
    const auto decoding = model.start_decoding(model_input(batch));
    const Hypothesis answer =
        greedy_decode(*decoding, 1, {data.bos_token(), data.eos_token(), data.length()}).front();
    const ForwardTrace trace = trace_input(saved.source, token_text(data.names(), source));
    batch.tokens = trace.tokens;
    batch.length = std::ssize(trace.tokens);
    batch.lengths = {static_cast<std::int32_t>(batch.length)};
    CHECK(trace.source == source);
    CHECK(trace.tokens.front() == data.bos_token());
    // Predictions are the output and the end-of-sequence token.
    std::vector<std::int32_t> expected = answer.tokens;
    if (std::ssize(expected) < data.length()) expected.push_back(data.eos_token());
    CHECK(trace.predictions == expected);
    const SiteRecorder recorder = pass_over(model, batch);
    CHECK(trace.logits == recorder.seen.at({SiteKind::logits}));
    CHECK(trace.attention == attention_of(model, recorder, batch));
    const auto cross = trace.weights(model.config(), {2, 1});
    CHECK(std::ssize(cross) == batch.length * batch.source_length);
    CHECK(cross.back() == trace.attention.back());
    const auto json = to_json(trace, model.config(), data.names());
    CHECK(json["attentions"][2]["name"] == "cross.0");
    CHECK(json["source"].size() == source.size());
  }
  CHECK_THROWS_WITH(trace_input(saved.source, "0 1 2 3 4"),
                    ContainsSubstring("5 tokens; this model accepts at most 4"));
}

TEST_CASE("an output that does not end has the maximum length of the model", "[inspect]") {
  Saved saved(writing_config(), 1);
  ParameterStore& store = saved.trained.parameters();
  const auto bias = std::ranges::find(store.entries(), "output.bias", &ParameterStore::Entry::name);
  REQUIRE(bias != store.entries().end());
  store.values()[bias->offset + 2] = 1000;  // always predicts token 2
  save_weights(saved.source.weights, store, {});
  const ForwardTrace trace = trace_input(saved.source, "0 1");
  CHECK(trace.predictions == std::vector<std::int32_t>(5, 2));
  CHECK(trace.tokens == std::vector<std::int32_t>{5, 2, 2, 2, 2});
}

TEST_CASE("traces of a split have their sources, and no padding", "[inspect]") {
  const Saved saved(deep_config(), 3);
  std::int64_t i = 0;
  trace_split(saved.source, Split::test, 12, [&](const ForwardTrace& trace) {
    Batch batch;
    saved.trained.trainer.dataset().fill(Split::test, i++, 1, batch);
    CHECK(trace.source ==
          std::vector<std::int32_t>(batch.sources.begin(), batch.sources.begin() + batch.source_lengths[0]));
    const Model& model = saved.trained.trainer.model();
    CHECK(same_but_for_rounding(model.config(), trace.attention,
                                attention_of(model, pass_over(model, batch), batch)));
  });
  CHECK(i == 12);
}
