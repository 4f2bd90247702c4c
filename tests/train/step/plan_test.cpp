// The counts of a planning tape, compared with a tape that computes and with numbers worked out by hand.
#include "train/step/plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "source_directory.h"
#include "thimble/engine/make_model.h"
#include "train/config/experiments.h"
#include "train/config/small_config.h"
#include "train/step/cost.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

using NamedConfigs = std::vector<std::pair<std::string, OpenConfig>>;

// Every kind of model, with each part in every form.
NamedConfigs planned_configs() {
  NamedConfigs all;
  const auto add = [&](const std::string& name, const std::vector<Config>& configs) {
    for (const Config& config : configs) all.emplace_back(fmt::format("{} {}", name, all.size()), config);
  };
  for (const Config& base : {small_config(), rich_config()}) {
    Config long_sequences = base;  // whose weights of attention are not kept
    long_sequences.task.length = 300;
    long_sequences.train.batch = 2;
    add("base", {base, convolution_config(base), long_sequences});
    add("heads", configs_of_heads(base));
    add("parts", configs_of_parts(base));
    if (base.model.norm == NormOrder::pre) add("language model", configs_of_language_models(base));
    for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
      Config pooled = base;
      pooled.task = {.name = "majority", .symbols = 3, .length = 9};
      pooled.model.output = {.per = OutputPer::sequence, .pooling = pooling};
      add("pooled", {pooled});
    }
    for (const Activation activation : {Activation::gelu_tanh, Activation::tanh}) {
      Config other = base;
      other.model.activation = activation;
      other.model.max_length = 77;
      add("activation", {other});
    }
  }
  for (const double dropout : {0.0, 0.2}) {
    std::vector<Config> writers = configs_of_parts(writing_config());
    for (const Config& config : configs_of_heads(writing_config())) writers.push_back(config);
    for (const Score score : {Score::additive, Score::dot, Score::general, Score::scaled_dot, Score::none})
      writers.push_back(recurrent_config(score));
    for (Config& config : writers) config.model.dropout = config.model.attention.dropout = dropout;
    add("writer", writers);
  }
  for (const std::string& file : experiments()) {
    OpenConfig config = open_config(file);
    config.train.precision = small_config().train.precision;
    all.emplace_back(file, config);
  }
  return all;
}

// Returns the bytes that a tape allocates in a pass.
std::size_t bytes_taken(const Model& model, const Batch& batch, PlannedPass pass) {
  const bool is_training = pass == PlannedPass::training;
  AlignedVector<Real> gradients(is_training ? model.parameters().size() : 0);
  Tape tape(is_training ? Tape::Mode::training : Tape::Mode::inference);
  tape.bind(model.parameters(), gradients);
  struct Observer : Hooks {
    bool may_replace(Site) const override { return false; }
  } observer;
  const Var logits =
      model(tape, labeled_input(batch),
            {.training = is_training, .hooks = pass == PlannedPass::observed ? &observer : nullptr});
  const Var loss = cross_entropy(logits, batch.row_labels);
  if (is_training) tape.backward(loss, 1, Tape::RetainGrads::leaves);
  return tape.bytes();
}

Flops flops_of(const Config& config, std::string_view op) {
  Flops sum;
  for (const OpCost& cost : plan_model(config, full_batch(config, 1), PlannedPass::training).ops) {
    if (cost.op != op) continue;
    sum.forward += cost.flops.forward;
    sum.backward += cost.flops.backward;
  }
  return sum;
}

// Of configs/bench/base.yaml: T 128, C 256, H 8, F 1024, V 128, 6 layers.
Config base_config() { return load_config(source_directory() + "/configs/bench/base.yaml"); }

}  // namespace

TEST_CASE("a plan is what a pass takes, to the byte", "[train][slow]") {
  const PlannedPass passes[] = {PlannedPass::training, PlannedPass::inference, PlannedPass::observed};
  std::size_t configs_in_files = 0;
  for (const auto& [name, config] : planned_configs()) {
    CAPTURE(name);
    configs_in_files += name.ends_with(".yaml");
    const Dataset dataset = make_dataset(config);
    const std::unique_ptr<Model> model = make_model(config.model, dataset);
    model->init(3);
    for (const std::int64_t sequences : {std::int64_t{1}, std::min<std::int64_t>(5, config.train.batch)}) {
      Batch batch;
      dataset.fill_step(0, config.train.batch, 0, sequences, batch);
      for (const PlannedPass pass : passes) {
        CAPTURE(sequences, static_cast<int>(pass));
        const ModelPlan plan = plan_model(config, batch, pass);
        CHECK(plan.tape_bytes == static_cast<double>(bytes_taken(*model, batch, pass)));
        double sum = 0;
        for (const OpCost& op : plan.ops) sum += op.bytes;
        CHECK(sum == plan.tape_bytes);
        CHECK(plan.parameters == static_cast<double>(model->parameters().count()));
      }
      const bool full = batch.rows.size() == batch.labels.size() && batch.length == dataset.length() &&
                        std::ranges::all_of(batch.lengths, [&](auto n) { return n == batch.length; });
      if (full && batch.sources.empty())
        CHECK(plan_model(config, full_batch(config, sequences), passes[0]).tape_bytes ==
              plan_model(config, batch, passes[0]).tape_bytes);
    }
  }
  CHECK(configs_in_files >= 15);
}

TEST_CASE("the arithmetic of configs/bench/base.yaml, worked out by hand", "[train]") {
  const Config base = base_config();
  // 6 layers: 4 projections of 256 x 256 and a feed-forward net of 2 x 256 x 1024; the output 256 x 128.
  constexpr double kProjections = 402'653'184, kFeedForward = 805'306'368, kOutput = 8'388'608;
  constexpr double kAttention = 100'663'296;  // 6 * 4 * 128^2 * 256
  CHECK(flops_of(base, "linear").forward == kProjections + kFeedForward + kOutput);
  CHECK(flops_of(base, "linear").backward == 2 * flops_of(base, "linear").forward);
  CHECK(flops_of(base, "attention").forward == kAttention);
  CHECK(flops_of(base, "attention").backward == 2 * kAttention);
  CHECK(step_cost(base).flops == 32 * 3 * 1'317'011'456.0);  // 126.4 GFLOP

  Config other = base;
  other.model.attention = {.kv_heads = 2, .d_key = 16, .d_value = 64};
  // 6 * 128 * 2 * 256 * (8 * 16 + 2 * 16 + 2 * 64 + 8 * 64)
  CHECK(flops_of(other, "linear").forward == 314'572'800 + kFeedForward + kOutput);
  CHECK(flops_of(other, "attention").forward == 125'829'120);  // 6 * 2 * 128^2 * 8 * (16 + 64)
  other.model.attention = {.tie_query_key = true};
  CHECK(flops_of(other, "linear").forward == 301'989'888 + kFeedForward + kOutput);  // 6 * 128 * 6 * 256^2
  other.model.attention = {.score = Score::general};
  CHECK(flops_of(other, "head_linear").forward == 6 * 128 * 2 * 8 * 32 * 32);
  other.model.attention = {.score = Score::additive};
  CHECK(flops_of(other, "attend").forward == kAttention / 2);  // values alone
  CHECK(flops_of(other, "attend").backward == kAttention);
  // Of 512 keys the weights are not kept, so their product with queries is computed again. A causal mask leaves
  // out 120 of 256 pairs of a block of 32 queries and 32 keys.
  Config longer = base;
  longer.task.length = 512;
  CHECK(flops_of(longer, "attention").forward == 16 * kAttention);
  CHECK(flops_of(longer, "attention").backward == 16 * kAttention * 5 / 2);
  longer.model.attention.mask = Mask::causal;
  CHECK(flops_of(longer, "attention").forward == 16 * kAttention * 136 / 256);
  other.model.gated = true;
  CHECK(flops_of(other, "linear").forward == kProjections + kFeedForward * 3 / 2 + kOutput);
  other = convolution_config(base);
  other.model.window = 7;
  // 6 * 128 * 2 * 7 * 256^2
  CHECK(flops_of(other, "linear").forward == 704'643'072 + kFeedForward + kOutput);
  CHECK(flops_of(other, "attention").forward == 0);

  other = base;
  other.task = {.name = "majority", .symbols = 7, .length = 9};
  other.model.output = {.per = OutputPer::sequence, .hidden = 100};
  other.model.layers = 1;
  // A layer of 9 tokens; 2 * (256 * 100 + 100 * 7) for the sequence.
  CHECK(flops_of(other, "linear").forward == 9 * (8 * 256 * 256 + 4 * 256 * 1024) + 52'600);

  // 5 tokens written of 4 read, with 5 symbols, begin and end: C 16, H 2, F 24, output 16 x 7.
  const Config writer = writing_config();
  // Of C x C, 4 in the encoder, 4 in the decoder, and the output of 5 across, with queries of 5, and keys and
  // values of 4, in parts of a weight.
  CHECK(flops_of(writer, "linear").forward ==
        2 * (256 * (4 * 4 + 5 * 4 + 5) + (4 + 5) * 2 * 16 * 24 + 5 * 16 * 7));
  CHECK(flops_of(writer, "linear_part").forward == 2 * 256 * (5 + 4 * 2));
  CHECK(flops_of(writer, "attention").forward == 4 * 16 * (4 * 4 + 5 * 5 + 5 * 4));
}

TEST_CASE("the arithmetic of recurrent models, worked out by hand", "[train]") {
  const auto forward = [](Score score, std::string_view op) {
    return flops_of(recurrent_config(score), op).forward;
  };
  constexpr double C = 16, read = 4, written = 5;                         // tokens; V = 7
  const double encoder = read * 2 * (3 * C / 2 * C + 3 * C / 2 * C / 2);  // two directions of width C / 2
  const double decoder = written * (3 * C * C + 3 * C * C), initial = C * C, output = written * C * 7;
  const double none = 2 * (encoder + decoder + initial + output);
  CHECK(forward(Score::none, "linear") == none);
  const double combine = 2 * written * 2 * C * C;
  CHECK(forward(Score::dot, "linear") == none + combine);
  CHECK(forward(Score::dot, "attention") == 2 * written * read * 2 * C);
  CHECK(forward(Score::general, "head_linear") == 2 * written * C * C);
  // Queries, keys, and a GRU that reads what was seen, too.
  CHECK(forward(Score::additive, "linear") ==
        none + combine + 2 * (written * C * C + read * C * C + written * 3 * C * C));
  CHECK(forward(Score::additive, "attend") == 2 * written * read * C);
}
