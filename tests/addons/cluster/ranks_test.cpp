#include <array>

#include "addons/cluster/bucket_sum.h"
#include "addons/cluster/thread_ranks.h"
#include "catch.h"
#include "program/bench/benchmark.h"
#include "thimble/engine/random.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/safetensors.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

// Everything that a rank computes in some steps.
struct Computed {
  std::vector<std::array<double, 6>> steps;
  std::string validation, hash;
  bool operator==(const Computed&) const = default;
};

Computed train_steps(const Config& config, Ranks& ranks) {
  Trainer trainer(config, ranks);
  Computed result;
  for (int i = 0; i < 6; ++i) {
    const StepReport r = trainer.step();
    result.steps.push_back({static_cast<double>(r.step), r.loss, r.accuracy, r.sequence_accuracy,
                            r.learning_rate, r.gradient_norm});
  }
  result.validation = json_text(to_json(trainer.evaluate(Split::validation)));
  trainer.require_equal_weights();
  result.hash = trainer.model().parameters().hash();
  return result;
}

std::vector<std::pair<std::string, Config>> configs_of_ranks() {
  Config sgd = small_config();
  sgd.train.optimizer.name = OptimizerKind::sgd;
  sgd.data.validation = 200;  // several chunks
  Config uneven = small_config();
  uneven.train.batch = 5;  // less than shards
  Config micro_batches = small_config();
  micro_batches.task.length = 40;  // 6 sequences per micro-batch
  micro_batches.train.batch = 70;
  return {{"everything", rich_config()},
          {"encoder-decoder", writing_config()},
          {"SGD", sgd},
          {"uneven", uneven},
          {"micro-batches", micro_batches}};
}

}  // namespace

TEST_CASE("the number of ranks changes no bit of anything", "[train][ranks]") {
  for (const auto& named : configs_of_ranks()) {
    const std::string name = named.first;
    Config config = named.second;
    for (const std::int64_t shards : {5, 7, 16}) {
      config.train.shards = shards;
      const Computed alone = train_steps(config, one_process());
      for (const int size : {2, 3, 5, 7}) {
        if (size > shards) continue;
        config.train.threads = size % 2 + 1;
        CAPTURE(name, shards, size);
        std::vector<Computed> results(static_cast<std::size_t>(size));
        require_success(run_ranks(size, [&](Communicator& ranks) {
          results[static_cast<std::size_t>(ranks.rank())] = train_steps(config, ranks);
        }));
        for (const Computed& result : results) CHECK((result == alone));
      }
    }
  }
}

namespace {

// A model's parameters and segments.
struct Parameters {
  explicit Parameters(const Config& config)
      : dataset(make_dataset(config)),
        model(make_model(config.model, dataset)),
        optimizer(config.train.optimizer, model->parameters()) {}

  const ParameterStore& store() const { return model->parameters(); }
  std::size_t count() const { return store().entries().size(); }

  Dataset dataset;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
};

void fill_shards(GradientSum& sum, const Range& shards) {
  for (std::size_t shard = shards.first; shard < shards.last; ++shard)
    for (std::uint64_t i = 0; Real & x : sum.of_shard(shard))
      x = static_cast<Real>(Random(shard, Stream::gradcheck).normal(i++, 0, 0));
}

}  // namespace

TEST_CASE("gradients are summed in buckets of any size, completed in any order", "[train][ranks]") {
  const Parameters p(small_config());
  const std::unique_ptr<GradientSum> alone = local_sum({7, p.optimizer.segments(), p.store()});
  fill_shards(*alone, {0, 7});
  for (const auto& segment : p.optimizer.segments()) alone->sum(segment);
  for (const std::size_t bucket : {1, 100, 1000, 100000}) {
    for (const int size : {2, 3, 7}) {
      CAPTURE(bucket, size);
      std::vector<int> differing(static_cast<std::size_t>(size));
      require_success(run_ranks(size, [&](Communicator& ranks) {
        BucketSum sum(ranks, {7, p.optimizer.segments(), p.store()}, bucket);
        const Range shards = ranks.own(7);
        for (int step = 0; step < 2; ++step) {
          sum.start();
          fill_shards(sum, shards);
          for (std::size_t shard = shards.first; shard < shards.last; ++shard)
            for (std::size_t i = 0; i < p.count() - static_cast<std::size_t>(step); ++i)  // some never are
              sum.complete({static_cast<int>((i + 3 * shard) % p.count())});
          sum.exchange();
          for (std::size_t i = sum.segments().first; i < sum.segments().last; ++i)
            sum.sum(p.optimizer.segments()[i]);
          std::vector<double> indices(p.optimizer.segments().size());
          for (std::size_t i = sum.segments().first; i < sum.segments().last; ++i)
            indices[i] = static_cast<double>(i);
          sum.share(indices);
          int& differs = differing[static_cast<std::size_t>(ranks.rank())];
          for (const auto& segment : p.optimizer.segments()) {
            const auto part = [&](std::span<const Real> all) {
              return all.subspan(segment.offset, segment.size);
            };
            differs += std::ranges::equal(part(sum.total()), part(alone->total())) ? 0 : 1;
          }
          for (std::size_t i = 0; i < indices.size(); ++i)
            differs += indices[i] == static_cast<double>(i) ? 0 : 1;
        }
      }));
      CHECK(differing == std::vector<int>(static_cast<std::size_t>(size)));
    }
  }
}

TEST_CASE("a bucket is sent once it is complete in all shards of a rank, after those behind it",
          "[train][ranks]") {
  const Parameters p(small_config());
  const auto last = static_cast<int>(p.count()) - 1;
  std::array<std::array<std::int64_t, 5>, 2> bytes{};
  std::array<std::int64_t, 2> all{};  // bytes that each rank sums
  require_success(run_ranks(2, [&](Communicator& ranks) {
    BucketSum sum(ranks, {4, p.optimizer.segments(), p.store()}, 1);
    auto& sent = bytes[static_cast<std::size_t>(ranks.rank())];
    const auto complete = [&](int parameter) {
      sum.complete({parameter});
      return ranks.traffic().bytes;
    };
    sum.start();
    for (int i = last; i >= 0; --i) sent[0] = complete(i);  // of one shard
    sent[1] = complete(last - 1);
    sent[2] = complete(last);
    for (int i = last - 2; i > 0; --i) sent[3] = complete(i);
    sent[4] = complete(0);
    const Range own = sum.segments();
    for (std::size_t i = own.first; i < own.last; ++i)
      all[static_cast<std::size_t>(ranks.rank())] +=
          static_cast<std::int64_t>(p.optimizer.segments()[i].size * sizeof(Real));
    sum.exchange();
    if (ranks.traffic().bytes != sent[4]) throw std::logic_error("a bucket was sent late");
  }));
  const auto& entries = p.store().entries();
  const auto end = static_cast<std::int64_t>(entries.back().size() * sizeof(Real));
  CHECK(bytes[0][0] == 0);
  CHECK(bytes[0][1] == 0);
  CHECK(bytes[0][2] >= end);
  CHECK(bytes[0][3] == all[1]);
  CHECK(bytes[1][2] == 0);
  CHECK(bytes[1][3] > 0);
  CHECK(bytes[1][3] < bytes[1][4]);
  CHECK(bytes[1][4] == all[0]);
}

TEST_CASE("a rank sends each element of its gradients, and of their sum, once", "[train][ranks]") {
  Config config = small_config();
  config.train.shards = 8;  // a rank sums two of them first
  std::array<double, 4> bytes{};
  double parameters = 0;
  require_success(run_ranks(4, [&](Communicator& ranks) {
    Trainer trainer(config, ranks);
    const std::int64_t before = ranks.traffic().bytes;
    trainer.step();
    bytes[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(ranks.traffic().bytes - before);
    if (ranks.rank() == 0) parameters = static_cast<double>(trainer.model().parameters().size());
  }));
  for (const double sent : bytes) CHECK_THAT(sent, WithinRel(1.5 * parameters * sizeof(Real), 0.25));
}

TEST_CASE("more ranks than shards, and ranks that differ, are refused", "[train][ranks]") {
  const auto too_many = run_ranks(5, [](Communicator& ranks) { Trainer(small_config(), ranks); });
  for (const RankEnd& end : too_many)
    CHECK_THAT(end.error, StartsWith("train.shards is 4, but 5 processes were started"));

  const auto differing = run_ranks(3, [](Communicator& ranks) {
    Config config = small_config();
    if (ranks.rank() == 2) config.train.optimizer.lr = 0.5;
    config.train.threads = ranks.rank() + 1;  // may differ
    Trainer(config, ranks);
  });
  for (const RankEnd& end : differing) {
    CHECK_THAT(end.error, StartsWith("hash of the config: rank 0 has "));
    CHECK_THAT(end.error, ContainsSubstring("rank 2 differs of 3 from rank 0"));
  }
}

TEST_CASE("a rank whose weights differ is named at the next checkpoint", "[train][ranks]") {
  const auto ends = run_ranks(3, [](Communicator& ranks) {
    Trainer trainer(small_config(), ranks);
    trainer.step();
    trainer.require_equal_weights();
    if (ranks.rank() == 1) trainer.model().parameters().values()[3] += 1;
    trainer.require_equal_weights();
  });
  for (const RankEnd& end : ends) {
    CHECK_THAT(end.error, StartsWith("hash of the weights: rank 0 has "));
    CHECK_THAT(end.error, ContainsSubstring("rank 1 differs"));
  }
}

namespace {

// Stops training on one rank after a step.
class StopAt : public TrainObserver {
 public:
  StopAt(bool stops, std::int64_t step) : stops_(stops), step_(step) {}
  void on_step(const StepReport& report) override { now_ = report.step; }
  bool wants_stop() override { return stops_ && now_ == step_; }

 private:
  const bool stops_;
  const std::int64_t step_;
  std::int64_t now_ = 0;
};

}  // namespace

TEST_CASE("a run that is stopped and resumed with other numbers of ranks is the run of one process",
          "[train][ranks]") {
  Config config = small_config();
  config.train.evaluate_every = 4;
  config.train.checkpoint_every = 3;
  config.train.shards = 7;
  const TemporaryDirectory folder;
  const auto directory = [&](const char* name) { return (folder / name).string(); };
  train(config, {.directory = directory("alone")});
  std::int64_t stop = 4;
  for (const int size : {3, 1, 5, 7, 2}) {
    std::vector<TrainResult> results(static_cast<std::size_t>(size));
    require_success(run_ranks(size, [&](Communicator& ranks) {
      StopAt observer(ranks.rank() == size - 1, stop);
      results[static_cast<std::size_t>(ranks.rank())] = train(config, {.directory = directory("ranks"),
                                                                       .resume = true,
                                                                       .observer = &observer,
                                                                       .make_head_log = {},
                                                                       .ranks = &ranks});
    }));
    for (const TrainResult& result : results) {
      CHECK(result.stopped == (stop < 20 ? Stopped::interrupted : Stopped::at_last_step));
      CHECK(result.steps == stop);
      CHECK(result.ranks == size);
    }
    stop += 4;
  }
  CHECK(timeless_metrics(directory("ranks")) == timeless_metrics(directory("alone")));
  const SafetensorsFile of_ranks(directory("ranks") + "/checkpoints/final.safetensors"),
      of_one(directory("alone") + "/checkpoints/final.safetensors");
  for (const auto& [tensor, entry] : of_one.entries()) {
    CAPTURE(tensor);
    CHECK((of_ranks.values<Real>(tensor) == of_one.values<Real>(tensor)));
  }
  const Json alone = parse_json(read_file(directory("alone") + "/summary.json")),
             ranks = parse_json(read_file(directory("ranks") + "/summary.json"));
  CHECK(ranks["weights_hash"] == alone["weights_hash"]);
  CHECK(ranks["test"] == alone["test"]);
  CHECK(ranks["ranks"] == 2);
}

TEST_CASE("one rank draws samples, and writes those that one process does", "[train][ranks]") {
  const TemporaryDirectory folder;
  const auto directory = [&](const char* name) { return (folder / name).string(); };
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += std::to_string(i * i) + "\n";
  write_file(directory("squares.txt"), lines);
  const OpenConfig config = open_data(parse_config(R"(
task: {name: text, file: squares.txt, length: 6}
model: {d_model: 8, heads: 1, d_ff: 8, attention: {mask: causal}}
train: {steps: 4, batch: 8, shards: 2, threads: 1, sample_every: 2}
)",
                                                   directory("config.yaml")));
  train(config, {.directory = directory("alone")});
  struct Samples : TrainObserver {
    void on_samples(std::int64_t step, const std::vector<std::string>&) override { steps.push_back(step); }
    std::vector<std::int64_t> steps;
  };
  std::array<Samples, 2> samples;
  require_success(run_ranks(2, [&](Communicator& ranks) {
    train(config, {.directory = directory("ranks"),
                   .observer = &samples[static_cast<std::size_t>(ranks.rank())],
                   .make_head_log = {},
                   .ranks = &ranks});
  }));
  CHECK(samples[0].steps == std::vector<std::int64_t>{2, 4});
  CHECK(samples[1].steps.empty());
  CHECK(timeless_metrics(directory("ranks")) == timeless_metrics(directory("alone")));
}

TEST_CASE("an error of one rank ends all of them", "[train][ranks]") {
  Config config = small_config();
  config.train.optimizer.lr = sizeof(Real) == 8 ? 1e200 : 1e30;
  const auto numeric =
      run_ranks(3, [&](Communicator& ranks) { train(config, {.directory = "", .ranks = &ranks}); });
  for (const RankEnd& end : numeric) CHECK_THAT(end.error, ContainsSubstring("not finite"));
  CHECK(numeric[0].ending.has_message);
  CHECK_FALSE(numeric[1].ending.has_message);

  // Only rank 0 writes the run, and so finds that there is one.
  const TemporaryDirectory folder;
  const std::string directory = (folder / "run").string();
  train(small_config(), {.directory = directory});
  const auto occupied = run_ranks(
      3, [&](Communicator& ranks) { train(small_config(), {.directory = directory, .ranks = &ranks}); });
  CHECK_THAT(occupied[0].error, ContainsSubstring("exists and is not an empty directory"));
  CHECK(occupied[2].error == "rank 0 ended with exit status 2");
  CHECK(occupied[0].ending.has_message);
}

TEST_CASE("ranks with other options are named, and end before the first step", "[train][ranks]") {
  const TemporaryDirectory directory;
  const auto message_of = [](const TrainOptions& usual, const TrainOptions& other) {
    const auto ends = run_ranks(3, [&](Communicator& ranks) {
      TrainOptions options = ranks.rank() == 1 ? other : usual;
      options.ranks = &ranks;
      train(small_config(), options);
    });
    // A rank may learn that another has ended before it has all values itself.
    std::string reported;
    for (const RankEnd& end : ends) {
      CHECK(end.ending.status == 2);
      if (end.ending.has_message) reported = end.error;
    }
    return reported;
  };
  TrainOptions after_five;
  after_five.stop_after = 5;
  const std::string rest = "; rank 1 differs of 3 from rank 0; start the same command for all ranks",
                    run = (directory / "run").string();
  CHECK(message_of({}, after_five) == "--stop-after: rank 0 has 0, rank 1 has 5" + rest);
  CHECK(message_of({.directory = run}, {.directory = run, .resume = true}) ==
        "--resume: rank 0 has not set, rank 1 has set" + rest);
  CHECK(message_of({.directory = run}, {}) == "run directory: rank 0 has one, rank 1 has none" + rest);
  CHECK(directory.files() == 0);
  const auto ends =
      run_ranks(2, [](Communicator& ranks) { benchmark(small_config(), 1, 2 + ranks.rank(), ranks); });
  CHECK_THAT(ends[ends[0].ending.has_message ? 0 : 1].error,
             StartsWith("--steps: rank 0 has 2, rank 1 has 3; "));
}

TEST_CASE("a benchmark of two ranks measures messages, and one rank alone", "[cluster][slow]") {
  Benchmark first;
  require_success(run_ranks(2, [&](Communicator& ranks) {
    const Benchmark b = benchmark(small_config(), 1, 4, ranks);
    if (ranks.rank() == 0) first = b;
  }));
  CHECK(first.ranks == 2);
  CHECK(first.step_ms.count == 4);
  CHECK(first.wait_ms > 0);
  CHECK((first.bytes_sent > 0 && first.messages_sent > 0));
  CHECK((first.latency_us > 0 && first.bandwidth_mb_per_s > 0));
  CHECK_THAT(first.efficiency, WithinRel(first.one_rank_ms / (2 * first.step_ms.median), 1e-12));
}
