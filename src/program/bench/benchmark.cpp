#include "program/bench/benchmark.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "engine/kernels/products/backend.h"
#include "engine/kernels/products/peak.h"
#include "thimble/train/statistics.h"
#include "train/files/memory.h"
#include "train/files/progress.h"
#include "train/files/stopwatch.h"
#include "train/step/cost.h"
#include "train/step/generation.h"
#include "train/step/trainer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

std::vector<double> time_steps(Trainer& trainer, std::int64_t steps, ProgressCounter& progress) {
  std::vector<double> ms;
  for (std::int64_t i = 0; i < steps; ++i) {
    const Stopwatch timer;
    trainer.step();
    ms.push_back(1e3 * timer.seconds());
    progress.advance();
  }
  return ms;
}

// Measures messages to all ranks at once: their latency with a byte each, and the rate at which as many bytes as
// the model has leave a rank.
void time_messages(const Trainer& trainer, Ranks& ranks, Benchmark& result) {
  constexpr int kMessages = 21;
  const auto median_seconds = [&](std::size_t bytes) {
    std::vector<char> values(bytes);
    std::vector<double> seconds;
    for (int round = 0; round < kMessages; ++round) {
      const Stopwatch timer;
      ranks.all_gather(std::span(values));
      seconds.push_back(timer.seconds());
    }
    return spread(seconds).median;
  };
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::size_t bytes = std::max(trainer.model().parameters().size() * sizeof(Real), 1000 * size);
  const double sent = static_cast<double>(bytes) * (ranks.size() - 1) / ranks.size();
  const double small = median_seconds(size);
  result.latency_us = 1e6 * small / (ranks.size() - 1);
  result.bandwidth_mb_per_s = 1e-6 * sent / std::max(1e-9, median_seconds(bytes) - small);
}

// Returns the rate per second of f(part), which returns an amount, on all threads.
double rate(Trainer& trainer, const std::function<double(std::int64_t)>& f) {
  std::vector<double> amounts(static_cast<std::size_t>(trainer.threads()));
  const Stopwatch timer;
  trainer.run(trainer.threads(),
              [&](std::int64_t part, int) { amounts[static_cast<std::size_t>(part)] = f(part); });
  return std::reduce(amounts.begin(), amounts.end()) / timer.seconds();
}

constexpr int kRounds = 5;

// Returns the best of several rounds.
double best_rate(Trainer& trainer, const std::function<double(std::int64_t)>& f) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) best = std::max(best, rate(trainer, f));
  return best;
}

double fma_flops(Trainer& trainer) {
  return rate(trainer, [](std::int64_t) {
    constexpr std::int64_t kRepetitions = 2'000'000;
    Real result = 1;
    return kernels::multiply_adds(kRepetitions, result);
  });
}

// Times steps of all ranks, with the rate of multiply-adds between them, since a processor that others use or that is warm is
// slower; and, alone on rank 0, steps of one process.
void time_ranks(const OpenConfig& config, std::int64_t steps, Trainer& trainer, Ranks& ranks,
                ProgressCounter& progress, Benchmark& result) {
  result.ranks = ranks.size();
  const Ranks::Traffic start = ranks.traffic();
  double waited = start.wait_seconds;
  std::vector<double> ms, waits, deviations;
  for (std::int64_t i = 0; i < steps; ++i) {
    ms.push_back(time_steps(trainer, 1, progress).front());
    waits.push_back(1e3 * (ranks.traffic().wait_seconds - waited));
    if (i % std::max<std::int64_t>(1, steps / kRounds) == 0)
      result.fma_gflops = std::max(result.fma_gflops, 1e-9 * fma_flops(trainer));
    waited = ranks.traffic().wait_seconds;
  }
  result.step_ms = spread(ms);
  for (const double t : ms) deviations.push_back(std::abs(t - result.step_ms.median));
  result.step_deviation_ms = spread(deviations).median;
  result.bytes_sent = static_cast<double>(ranks.traffic().bytes - start.bytes) / static_cast<double>(steps);
  result.messages_sent =
      static_cast<double>(ranks.traffic().messages - start.messages) / static_cast<double>(steps);
  if (ranks.size() == 1) return;
  result.wait_ms = spread(waits).median;
  time_messages(trainer, ranks, result);
  if (ranks.rank() == 0) {
    OpenConfig alone = config;
    alone.train.threads = trainer.threads();
    Trainer one(alone);
    time_steps(one, 2, progress);
    result.one_rank_ms = spread(time_steps(one, std::max<std::int64_t>(1, steps / 4), progress)).median;
    result.efficiency = result.one_rank_ms / (ranks.size() * result.step_ms.median);
  }
  ranks.any(false);
}

// Returns FLOP per second of a matrix product in OpenBLAS, with a share of the rows for each thread.
double blas_flops(Trainer& trainer) {
  constexpr std::int64_t kSize = 2048;
  const Tensor a({kSize, kSize}), b({kSize, kSize});
  Tensor c({kSize, kSize});
  const std::int64_t rows = (kSize + trainer.threads() - 1) / trainer.threads();
  return best_rate(trainer, [&](std::int64_t part) {
    const std::int64_t first = std::min(kSize, part * rows), count = std::min(rows, kSize - first);
    kernels::blas_gemm(c.matrix().row_block(first, count), a.matrix().row_block(first, count),
                       kernels::Op::none, b.matrix(), kernels::Op::none, 1, 0);
    return 2.0 * kSize * kSize * static_cast<double>(count);
  });
}

// Returns bytes per second of copying, read and written, beyond the caches.
double memory_bandwidth(Trainer& trainer) {
  constexpr std::int64_t kReals = (64 << 20) / sizeof(Real);
  const Tensor from({kReals});
  Tensor to({kReals});
  const std::int64_t share = kReals / trainer.threads();
  return best_rate(trainer, [&](std::int64_t part) {
    std::copy_n(from.data() + part * share, share, to.data() + part * share);
    return 2.0 * static_cast<double>(share) * sizeof(Real);
  });
}

// Returns the tokens per second that the model draws, ends of documents included.
double generation_rate(const Trainer& trainer) {
  std::vector<double> rates;
  for (std::uint64_t round = 0; round < std::uint64_t{kRounds}; ++round) {
    const Stopwatch timer;
    std::size_t tokens = 0;
    for (const Hypothesis& text : draw_texts(trainer.model(), trainer.dataset(), round))
      tokens += text.log_probabilities.size();
    rates.push_back(static_cast<double>(tokens) / timer.seconds());
  }
  return spread(rates).median;
}

// Returns the cost of every op in a step, by name.
std::map<std::string, OpCost> by_name(const StepCost& step) {
  std::map<std::string, OpCost> costs;
  for (const OpCost& op : step.ops) {
    OpCost& sum = costs[op.op];
    sum.flops.forward += op.flops.forward;
    sum.flops.backward += op.flops.backward;
    sum.traffic += op.traffic;
  }
  return costs;
}

// Adds what the profiled steps took, by phase and by op.
void add_profile(const StepCost& cost_of_step, const Trainer::StepProfile& profile, std::int64_t steps,
                 Benchmark& result) {
  const auto per_step = [=](double seconds) { return 1e3 * seconds / static_cast<double>(steps); };
  double waiting = result.profiled_ms;
  for (const Profile::Span& span : profile.phases.spans()) {
    result.phases.push_back({std::string(span.name), per_step(span.seconds)});
    waiting -= result.phases.back().ms;
  }
  result.phases.push_back({"waiting", std::max(0.0, waiting)});
  std::map<std::string, OpCost> costs = by_name(cost_of_step);
  for (const Profile::Span& span : profile.ops.forward.spans()) {
    const auto& backward = profile.ops.backward.spans();
    const auto back = std::ranges::find(backward, span.name, &Profile::Span::name);
    Benchmark::Op& op = result.ops.emplace_back(
        Benchmark::Op{.name = std::string(span.name),
                      .calls = span.count / steps,
                      .forward_ms = per_step(span.seconds),
                      .backward_ms = back == backward.end() ? 0 : per_step(back->seconds)});
    const OpCost& cost = costs[op.name];
    const double thread_ms = (op.forward_ms + op.backward_ms) / result.threads;
    if (cost.flops.total() > 0) op.share_of_fma = 1e-6 * cost.flops.total() / thread_ms / result.fma_gflops;
    op.share_of_memory = 1e-6 * cost.traffic / thread_ms / result.memory_gb_per_s;
  }
  std::ranges::sort(result.ops, std::greater(),
                    [](const auto& op) { return op.forward_ms + op.backward_ms; });
}

}  // namespace

}  // namespace THIMBLE_PRECISION

template <>
Benchmark run_benchmark<Real>(const OpenConfig& config, std::int64_t warmup, std::int64_t steps,
                              Ranks& ranks) {
  Trainer trainer(config, ranks);
  Benchmark result;
  result.threads = trainer.threads();
  const std::int64_t profiled = std::max<std::int64_t>(1, steps / 4);
  ProgressCounter progress("timing steps", static_cast<double>(warmup + steps + profiled));
  time_steps(trainer, warmup, progress);
  time_ranks(config, steps, trainer, ranks, progress, result);
  result.sequences_per_s = 1e3 * static_cast<double>(config.train.batch) / result.step_ms.median;
  const StepCost cost = step_cost(config);
  result.gflops = 1e-6 * cost.flops / result.step_ms.median;
  result.peak_mib = static_cast<double>(peak_memory()) / (1 << 20);

  trainer.start_profile();
  result.profiled_ms = trainer.threads() * spread(time_steps(trainer, profiled, progress)).mean;
  const Trainer::StepProfile profile = trainer.profile();
  if (trainer.dataset().task().predicts_next) result.tokens_per_s = generation_rate(trainer);
  const ProgressCounter machine(kTimingMachine);
  result.memory_gb_per_s = 1e-9 * memory_bandwidth(trainer);
  result.blas_kernel = kernels::blas_kernel();
  if (!result.blas_kernel.empty()) result.blas_gflops = 1e-9 * blas_flops(trainer);
  add_profile(cost, profile, profiled, result);
  return result;
}

}  // namespace thimble
