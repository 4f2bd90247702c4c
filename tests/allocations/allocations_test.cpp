// Counts what is taken from the heap, in every thread, while a training step runs.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "inspect/effects/joint_effects.h"
#include "inspect/effects/measure_effects.h"
#include "inspect/scores/score_observer.h"
#include "thimble/inspect/inspect.h"
#include "train/config/small_config.h"
#include "train/data/table/table.h"
#include "train/files/progress.h"
#include "train/step/cost.h"
#include "train/step/trainer.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> taken = 0;

void count() {
  if (counting.load(std::memory_order_relaxed)) taken.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// All of glibc's ways to take memory, as its manual allows them to be replaced; operator new ends in one of
// them.
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t size) noexcept {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t items, std::size_t size) noexcept {
  count();
  return __libc_calloc(items, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  count();
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}

using namespace thimble;

namespace {

template <class F>
int allocations_of(const F& action) {
  taken = 0;
  counting = true;
  action();
  counting = false;
  return taken;
}

// Shown to the outside, so that no allocation is optimized away.
void* volatile shown;
void* show(void* p) {
  shown = p;
  return p;
}

int allocations_from_third_step(OpenConfig config, std::int64_t threads) {
  config.train.threads = threads;
  Trainer trainer(config);
  trainer.step();
  trainer.step();
  return allocations_of([&] {
    for (int step = 3; step <= 40; ++step) trainer.step();
  });
}

}  // namespace

TEST_CASE("the counter sees every way to take memory, in every thread", "[allocations]") {
  CHECK(allocations_of([] {}) == 0);
  CHECK(allocations_of([] { std::free(show(std::malloc(5))); }) == 1);
  CHECK(allocations_of([] { std::free(show(std::calloc(5, 2))); }) == 1);
  CHECK(allocations_of([] { std::free(show(std::realloc(nullptr, 5))); }) == 1);
  CHECK(allocations_of([] { std::free(show(std::aligned_alloc(64, 64))); }) == 1);
  CHECK(allocations_of([] { std::free(show(::memalign(64, 64))); }) == 1);
  CHECK(allocations_of([] {
          void* p = nullptr;
          if (::posix_memalign(&p, 64, 64) == 0) std::free(show(p));
        }) == 1);
  CHECK(allocations_of([] { ::operator delete(show(::operator new(5))); }) == 1);
  CHECK(allocations_of([] {
          constexpr std::align_val_t kLine{64};
          ::operator delete(show(::operator new(64, kLine)), kLine);
        }) == 1);

  std::atomic<bool> go = false;
  std::thread other([&] {
    while (!go) std::this_thread::yield();
    std::free(show(std::malloc(5)));
  });
  CHECK(allocations_of([&] {
          go = true;
          other.join();
        }) == 1);
}

TEST_CASE("an allocation in the middle of training would be seen", "[allocations]") {
  Trainer trainer(small_config());
  for (int step = 1; step <= 2; ++step) trainer.step();
  CHECK(allocations_of([&] {
          trainer.step();
          const std::vector<int> planted(100);
          show(const_cast<int*>(planted.data()));
        }) == 1);
  CHECK(allocations_of([&] { Trainer fresh(small_config()); }) > 0);  // asks for the memory of its steps
}

namespace {

// Rows of 1 to 18 tokens and one of 200, whose micro-batches differ from step to step.
OpenConfig own_data(ModelKind kind) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    const auto sequence = [&](int length) {
      std::string tokens = std::to_string(i % 30);
      for (int t = 1; t < length; ++t) tokens += fmt::format(" {}", (i + t) % 30);
      return tokens;
    };
    text += sequence(i == 100 ? 200 : 1 + i * 5 % 18) + "\t" +
            sequence(kind == ModelKind::encoder ? 1
                     : i == 200                 ? 150
                                                : 1 + i * 7 % 13) +
            "\n";
  }
  OpenConfig config = kind == ModelKind::recurrent ? recurrent_config(Score::additive) : small_config();
  config.source = std::make_shared<Table>(DataTexts{.main = {"t.tsv", text}});
  config.task = config.source->config();
  config.data = {.train = kAll, .validation = kAll, .test = kAll};
  config.model.kind = kind;
  config.model.output.per = kind == ModelKind::encoder ? OutputPer::sequence : OutputPer::next;
  config.train.batch = 59;
  return config;
}

}  // namespace

TEST_CASE("from its third step on, training takes nothing from the heap", "[allocations]") {
  Config gelu = small_config();
  gelu.model.norm = NormOrder::pre;
  gelu.model.activation = Activation::gelu;
  gelu.model.layers = 2;
  gelu.model.dropout = 0.1;
  gelu.model.attention.dropout = 0.2;
  gelu.data.train = 0;
  Config uneven = small_config();  // shards and micro-batches of different sizes
  uneven.task.length = 40;
  uneven.train.batch = 59;
  Config unkept = gelu;  // attention does not keep its weights
  unkept.task.length = 300;
  unkept.train.batch = 4;
  Config sgd = small_config();
  sgd.train.optimizer.name = OptimizerKind::sgd;
  sgd.train.clip_norm = 1;
  Config recurrent = recurrent_config(Score::additive);
  recurrent.model.dropout = recurrent.model.attention.dropout = 0.1;
  const std::pair<std::string, OpenConfig> cases[] = {
      {"own data", own_data(ModelKind::encoder)},
      {"own pairs", own_data(ModelKind::encoder_decoder)},
      {"own pairs, recurrent", own_data(ModelKind::recurrent)},
      {"encoder-decoder", writing_config()},
      {"recurrent, additive", recurrent},
      {"recurrent, general", recurrent_config(Score::general)},
      {"post-norm", small_config()},
      {"pre-norm, GELU, dropout", gelu},
      {"everything", rich_config()},
      {"uneven", uneven},
      {"weights not kept", unkept},
      {"SGD", sgd}};
  for (const auto& [name, config] : cases) {
    for (const std::int64_t threads : {1, 2}) {
      CAPTURE(name, threads);
      CHECK(allocations_from_third_step(config, threads) == 0);
    }
  }
}

namespace {

double bytes_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

Config long_pairs(Config config) {
  config.task.length = 40;
  config.model.d_model = 64;
  return config;
}

}  // namespace

TEST_CASE("the estimated memory is what training takes", "[allocations][slow]") {
  Config layers = small_config();  // parameters and what goes with them
  layers.task.length = 12;
  layers.model.d_model = 128;
  layers.model.d_ff = 384;
  layers.model.layers = 4;
  Config long_sequences = rich_config();  // attention weights and their dropout
  long_sequences.task.length = 200;
  long_sequences.model.d_model = 32;
  long_sequences.model.heads = 4;
  Config unkept = long_sequences;  // attention does not keep its weights
  unkept.task.length = 1000;
  Config symbols = small_config();  // logits
  symbols.task.symbols = 3000;
  symbols.task.length = 64;
  symbols.train.optimizer.name = OptimizerKind::sgd;
  const std::pair<std::string, Config> cases[] = {{"layers", layers},
                                                  {"long sequences", long_sequences},
                                                  {"weights not kept", unkept},
                                                  {"symbols", symbols},
                                                  {"encoder-decoder", long_pairs(writing_config())},
                                                  {"additive", long_pairs(recurrent_config(Score::additive))},
                                                  {"general", long_pairs(recurrent_config(Score::general))}};
  for (const auto& [name, config] : cases) {
    CAPTURE(name);
    const double before = bytes_in_use();
    Trainer trainer(config);
    trainer.step();
    for (int round = 0; round < 2; ++round) trainer.evaluate(Split::validation);
    const MemoryEstimate estimate = training_memory(config);
    const double without_file = estimate.total() - estimate.program - estimate.parameters;
    CHECK_THAT(bytes_in_use() - before, WithinRel(without_file, 0.25));
  }
}
