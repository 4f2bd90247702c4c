// Leaks: losses below the lowest possible one by more than chance explains.
#include <algorithm>

#include "catch.h"
#include "thimble/engine/random.h"
#include "train/config/small_config.h"
#include "train/step/micro_batch.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

std::span<Real> values(Trainer& trainer, const std::string& name) {
  ParameterStore& store = trainer.model().parameters();
  const auto entry = std::ranges::find(store.entries(), name, &ParameterStore::Entry::name);
  REQUIRE(entry != store.entries().end());
  return store.values().subspan(entry->offset, entry->size());
}

// A model that copies tokens by rows of random signs, with which it embeds and recognizes them.
Config copier_config() {
  Config config = small_config();
  config.task = {.name = "copy", .symbols = 1200, .length = 40};
  config.data = {.train = 0, .validation = 150, .test = 150};
  config.model = {.d_model = 64, .d_ff = 0, .positions = Positions::none};
  return config;
}

void make_copier(Trainer& trainer) {
  std::ranges::fill(trainer.model().parameters().values(), Real(0));
  std::ranges::fill(values(trainer, "encoder.layers.0.norm1.weight"), Real(1));
  const std::span<Real> embedding = values(trainer, "token_embedding.weight");
  for (std::size_t i = 0; i < embedding.size(); ++i)
    embedding[i] = Random(1, Stream::gradcheck).below(2, i) == 0 ? Real(-1) : Real(1);
  std::ranges::copy(embedding, values(trainer, "output.weight").begin());
}

}  // namespace

TEST_CASE("a loss just above the lowest possible one is no leak", "[train]") {
  Trainer trainer(copier_config());
  make_copier(trainer);
  values(trainer, "output.bias")[100] = -80;  // a rare symbol that it gets wrong
  const EvalResult report = trainer.evaluate(Split::test);
  CHECK(report.accuracy > 0.99);
  CHECK(report.loss > 1e-4);
  CHECK(report.loss < 4 * *report.loss_error);  // the lowest possible loss is 0
  CHECK_FALSE(report.leak.has_value());
}

TEST_CASE("the spread of few sequences does not show a leak", "[train]") {
  // The first sequences alone are far below the lowest possible loss, as those of a leak are.
  Config config = small_config();
  config.task = {.name = "induction", .symbols = 8, .length = 4};
  config.data = {.train = 0, .validation = 0, .test = 40};
  config.model.d_model = 32;
  config.train.optimizer.lr = 3e-3;
  config.model.attention.mask = Mask::none;  // the reader refuses it: answers are visible
  Trainer trainer(config);
  for (int i = 0; i < 300; ++i) trainer.step();
  CHECK(trainer.evaluate(Split::test, 30).leak.has_value());
  const EvalResult few = trainer.evaluate(Split::test, 29);
  CHECK(few.loss < *few.lowest_loss - 4 * *few.loss_error);
  CHECK_FALSE(few.leak.has_value());
}

TEST_CASE("sequences whose answers are equally hard have no error between them", "[train]") {
  Config config = small_config();
  config.data.test = 8 * micro_batch(4) + 1;
  Trainer trainer(config);
  CHECK(*trainer.evaluate(Split::test).loss_error > 1e-3);
  std::ranges::fill(trainer.model().parameters().values(), Real{0});
  CHECK(*trainer.evaluate(Split::test).loss_error < 1e-5);
}

TEST_CASE("the lowest possible loss is that on fresh sequences", "[train]") {
  Trainer trainer(small_config());
  CHECK(trainer.evaluate(Split::test).lowest_loss == 0);
  CHECK_FALSE(trainer.evaluate(Split::train).lowest_loss.has_value());
  Config endless = small_config();
  endless.data.train = 0;
  CHECK(Trainer(endless).evaluate(Split::train, 10).lowest_loss == 0);
}
