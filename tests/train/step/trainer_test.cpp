#include "train/step/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/schedule.h"
#include "train/config/small_config.h"

using namespace thimble;

namespace {

using Numbers = std::vector<double>;

Numbers numbers(const StepReport& r) {
  return {static_cast<double>(r.step), r.loss, r.accuracy, r.learning_rate, r.gradient_norm,
          r.sequence_accuracy};
}
Numbers numbers(const EvalResult& r) {
  return {r.loss, r.accuracy, r.sequence_accuracy, static_cast<double>(r.sequences)};
}

// The reports and the final weights of some steps.
struct History {
  std::vector<Numbers> steps;
  Numbers validation;
  std::string hash;

  explicit History(Config config, std::int64_t threads = 1, int count = 12) {
    config.train.threads = threads;
    Trainer trainer(config);
    CHECK(trainer.threads() == threads);
    for (int i = 0; i < count; ++i) steps.push_back(numbers(trainer.step()));
    validation = numbers(trainer.evaluate(Split::validation));
    hash = trainer.model().parameters().hash();
  }
  double loss(std::size_t step) const { return steps.at(step)[1]; }
};

Config many_micro_batches() {
  Config config = small_config();
  config.task = {.name = "copy", .symbols = 6, .length = 40, .min_length = 5};
  config.train.batch = 57;  // 15 or 14 sequences per shard, 6 per micro-batch
  return config;
}

// Next-token prediction, causal.
Config sorting() {
  Config config = small_config();
  config.task = {.name = "sort", .symbols = 3, .length = 4};
  config.data = {.train = 0, .validation = 50, .test = 50};
  config.model.norm = NormOrder::pre;
  config.model.attention.mask = Mask::causal;
  config.model.output = {.per = OutputPer::next};
  return config;
}

std::vector<std::pair<std::string, Config>> all_kinds() {
  Config sgd = small_config();
  // At 0.1 a quarter of the seeds are at 0.7 to 0.9 of the first loss after 200 steps; at 0.05 all below 0.1.
  sgd.train.optimizer = {.name = OptimizerKind::sgd, .lr = 0.05};
  return {{"post-norm", small_config()},
          {"everything", rich_config()},
          {"micro-batches", many_micro_batches()},
          {"next token", sorting()},
          {"SGD", sgd}};
}

}  // namespace

TEST_CASE("training lowers the loss, whatever the config", "[train]") {
  for (const auto& [name, config] : all_kinds()) {
    CAPTURE(name);
    Config longer = config;
    longer.train.steps = 200;
    longer.train.label_smoothing = 0;
    const History history(longer, 1, 200);
    CHECK(history.loss(0) > 0.9 * std::log(config.task.symbols));  // an untrained model knows nothing
    CHECK(history.loss(199) < 0.75 * history.loss(0));
    CHECK(history.validation[0] < 0.8 * history.loss(0));
  }
}

TEST_CASE("the number of threads changes no bit of anything", "[train]") {
  for (const auto& [name, config] : all_kinds()) {
    const History one(config, 1);
    for (const std::int64_t threads : {2, 3}) {
      CAPTURE(name, threads);
      const History several(config, threads);
      CHECK(several.steps == one.steps);
      CHECK(several.validation == one.validation);
      CHECK(several.hash == one.hash);
    }
  }
}

TEST_CASE("trainers that exchange the shards of a step make the step of one", "[train]") {
  const Config config = small_config();
  Trainer whole(config), first(config), second(config);
  const std::size_t shards = whole.shards().size(), half = shards / 2;
  REQUIRE(half > 0);
  const auto copy = [](Trainer& from, Trainer& to, const Range& range) {
    for (std::size_t s = range.first; s < range.last; ++s) {
      std::ranges::copy(from.shard_gradients(s), to.shard_gradients(s).begin());
      to.shard_sums(s) = from.shard_sums(s);
    }
  };
  for (int step = 0; step < 5; ++step) {
    first.compute({0, half});
    second.compute({half, shards});
    copy(first, second, {0, half});
    copy(second, first, {half, shards});
    const Numbers expected = numbers(whole.step());
    CHECK(numbers(first.update()) == expected);
    CHECK(numbers(second.update()) == expected);
  }
  CHECK(first.model().parameters().hash() == whole.model().parameters().hash());
  CHECK(second.model().parameters().hash() == whole.model().parameters().hash());
}

TEST_CASE("the same config gives the same run, another seed another one", "[train]") {
  const History first(rich_config()), again(rich_config());
  CHECK(first.steps == again.steps);
  CHECK(first.hash == again.hash);
  Config other = rich_config();
  other.train.seed = 43;
  CHECK(History(other).loss(0) != first.loss(0));
}

TEST_CASE("the number of shards changes rounding only, dropout included", "[train]") {
  const double rounding = sizeof(Real) == 8 ? 1e-11 : 2e-3;
  for (const auto& [name, config] : all_kinds()) {
    const History four(config, 1, 5);
    for (const std::int64_t shards : {1, 3, 8}) {
      CAPTURE(name, shards);
      Config other = config;
      other.train.shards = shards;
      const History history(other, 1, 5);
      for (std::size_t i = 0; i < 5; ++i) {
        for (std::size_t field = 0; field < 5; ++field) {
          if (field != 2) CHECK_THAT(history.steps[i][field], WithinRel(four.steps[i][field], rounding));
        }
      }
    }
  }
}

TEST_CASE("more shards than sequences is possible", "[train]") {
  Config config = small_config();
  config.train.batch = 3;
  config.train.shards = 8;
  const History one(config, 1), two(config, 2);
  CHECK(std::isfinite(one.loss(11)));
  CHECK(one.hash == two.hash);
}

TEST_CASE("a step reports the learning rate and the norm of the mean gradient", "[train]") {
  Config config = rich_config();
  config.train.optimizer.lr = 0.01;
  Trainer trainer(config);
  CHECK(trainer.steps() == 0);
  for (std::int64_t t = 0; t < 5; ++t) {
    Batch batch;
    trainer.dataset().fill_step(t, config.train.batch, 0, config.train.batch, batch);
    const StepReport report = trainer.step();
    CHECK(report.step == t + 1);
    CHECK(trainer.steps() == t + 1);
    CHECK(report.learning_rate == 0.01 * schedule_factor(config.train.schedule, 0.01, t, config.train.steps));
    double squares = 0;
    for (const Real g : trainer.gradients()) squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK_THAT(report.gradient_norm,
               WithinRel(std::sqrt(squares) / static_cast<double>(batch.rows.size()), 1e-5));
  }
}

TEST_CASE("a step at learning rate 0 moves nothing", "[train]") {
  Trainer trainer(rich_config());  // its warm-up starts from 0
  const std::string before = trainer.model().parameters().hash();
  trainer.step();
  CHECK(trainer.model().parameters().hash() == before);
  trainer.step();
  CHECK(trainer.model().parameters().hash() != before);
}

TEST_CASE("plain SGD moves against the mean gradient, at most by the clipped norm", "[train]") {
  for (const double clip : {0.0, 0.01}) {
    CAPTURE(clip);
    Config config = small_config();
    config.train.optimizer = {.name = OptimizerKind::sgd, .lr = 1, .momentum = 0};
    config.train.clip_norm = clip;
    Trainer trainer(config);
    const auto values = [&] { return trainer.model().parameters().values(); };
    const std::vector<Real> before(values().begin(), values().end());
    const StepReport report = trainer.step();
    const double labeled = 24 * 4, factor = clip > 0 ? clip / report.gradient_norm : 1;
    double moved = 0, worst = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double change = static_cast<double>(values()[i]) - static_cast<double>(before[i]);
      moved += change * change;
      worst =
          std::max(worst, std::abs(change + factor * static_cast<double>(trainer.gradients()[i]) / labeled));
    }
    CHECK(report.gradient_norm > 0.01);
    CHECK(worst < (sizeof(Real) == 8 ? 1e-8 : 1e-6));
    CHECK_THAT(std::sqrt(moved), WithinRel(clip > 0 ? clip : report.gradient_norm, 1e-4));
  }
}

TEST_CASE("label smoothing counts while training and not in an evaluation", "[train]") {
  Config smooth = small_config();
  smooth.train.label_smoothing = 0.3;
  Trainer plain(small_config()), smoothed(smooth);
  CHECK(numbers(smoothed.evaluate(Split::test)) == numbers(plain.evaluate(Split::test)));
  CHECK(smoothed.step().loss != plain.step().loss);
}

namespace {

// What a model predicts for a batch, position by position.
struct Counted {
  double loss = 0, right = 0, sequences_right = 0, labels = 0, sequences = 0;

  Counted(const Trainer& trainer, const Batch& batch, const ForwardOptions& options)
      : labels(static_cast<double>(batch.rows.size())), sequences(static_cast<double>(batch.sequences)) {
    Tape tape(Tape::Mode::inference);
    tape.bind(trainer.model().parameters(), {});
    const Var logits = trainer.model()(tape, model_input(batch), options);
    loss = static_cast<double>(cross_entropy(logits, batch.labels).item());
    for (std::int64_t b = 0; b < batch.sequences; ++b) {
      bool all = true;
      for (std::int64_t t = 0; t < batch.length; ++t) {
        const std::int64_t r = b * batch.length + t;
        const std::int32_t label = batch.labels[static_cast<std::size_t>(r)];
        if (label == kIgnore) continue;
        const Real* row = logits.value().row(r);
        const bool hit = std::max_element(row, row + logits.value().cols) - row == label;
        right += hit;
        all = all && hit;
      }
      sequences_right += all;
    }
  }
};

}  // namespace

TEST_CASE("an evaluation counts what the model predicts, position by position", "[train]") {
  for (const auto& [name, config] : all_kinds()) {
    CAPTURE(name);
    Trainer trainer(config);
    for (int i = 0; i < 15; ++i) trainer.step();
    const EvalResult report = trainer.evaluate(Split::test);
    Batch batch;
    trainer.dataset().fill(Split::test, 0, trainer.dataset().size(Split::test), batch);
    const Counted counted(trainer, batch, {});
    CHECK(report.sequences == batch.sequences);
    CHECK_THAT(report.loss, WithinRel(counted.loss, 1e-5));
    CHECK_THAT(report.accuracy, WithinRel(counted.right / counted.labels, 1e-12));
    CHECK_THAT(report.sequence_accuracy, WithinAbs(counted.sequences_right / counted.sequences, 1e-12));
    CHECK(counted.right > 0);
  }
}

TEST_CASE("a step counts what the model predicts, with dropout by the seed, the step and the sequence",
          "[train]") {
  double sequences_right = 0;
  for (auto [name, config] : all_kinds()) {
    CAPTURE(name);
    config.train.label_smoothing = 0;
    Trainer trainer(config);
    for (std::uint32_t step = 0; step < 40; ++step) {
      Batch batch;
      trainer.dataset().fill_step(step, config.train.batch, 0, config.train.batch, batch);
      const Counted counted(trainer, batch, {.training = true, .seed = config.train.seed, .step = step});
      const StepReport report = trainer.step();
      CHECK_THAT(report.loss, WithinRel(counted.loss, 1e-5));
      CHECK_THAT(report.accuracy, WithinAbs(counted.right / counted.labels, 1e-12));
      CHECK_THAT(report.sequence_accuracy, WithinAbs(counted.sequences_right / counted.sequences, 1e-12));
      sequences_right += counted.sequences_right;
    }
  }
  CHECK(sequences_right > 0);
}

TEST_CASE("an evaluation changes nothing and can be limited", "[train]") {
  Trainer trainer(rich_config());
  const std::string before = trainer.model().parameters().hash();
  CHECK(trainer.evaluate(Split::test, 10).sequences == 10);
  CHECK(trainer.evaluate(Split::test, 1000).sequences == 60);
  CHECK(trainer.evaluate(Split::train, 30).sequences == 30);
  CHECK(numbers(trainer.evaluate(Split::test)) == numbers(trainer.evaluate(Split::test)));
  CHECK(trainer.model().parameters().hash() == before);
  CHECK(trainer.steps() == 0);
  CHECK_THROWS_AS(trainer.evaluate(Split::train), DataError);  // endless
  CHECK_THROWS_WITH(trainer.evaluate(Split::train), ContainsSubstring("the train split is unlimited"));
}

TEST_CASE("a task that does not suit the output is refused", "[train]") {
  Config config = small_config();
  config.model.output.per = OutputPer::sequence;
  CHECK_THROWS_AS(Trainer(config), DataError);
}
