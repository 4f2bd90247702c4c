// Measures how fast a config trains, and where its time goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/ranks.h"
#include "thimble/train/statistics.h"

namespace thimble {

// The speed of training, as `thimble bench` prints it.
struct Benchmark {
  Spread step_ms;                // milliseconds of whole steps: data, forward, backward, clipping, optimizer
  double step_deviation_ms = 0;  // from the median, the median
  double sequences_per_s = 0;    // at the median step
  double gflops = 0;             // GFLOP per second of the median step in matrix products, see StepCost
  double fma_gflops = 0;       // of multiply-adds on registers alone, on the same threads, between the steps
  double blas_gflops = 0;      // of a 2048 x 2048 x 2048 product by OpenBLAS; 0 without it
  std::string blas_kernel;     // that OpenBLAS has chosen
  double memory_gb_per_s = 0;  // of copying beyond the caches, read and written
  double peak_mib = 0;         // of the process, before that product
  int threads = 0;
  double tokens_per_s = 0;  // drawn by a model of task text, see draw_texts(); 0: another task

  // With several ranks, on rank 0.
  int ranks = 1;
  double wait_ms = 0;  // median milliseconds of a step in which this rank waited for others
  double bytes_sent = 0, messages_sent = 0;       // per step
  double latency_us = 0, bandwidth_mb_per_s = 0;  // of a message without content, and of large ones
  double one_rank_ms = 0;                         // median step of a single rank, while the others are idle
  double efficiency = 0;                          // share of the time of a single rank that the ranks save

  // Milliseconds per step, summed over threads, measured on further steps, as profiling takes time.
  struct Phase {
    std::string name;
    double ms = 0;
  };
  std::vector<Phase> phases;  // the last is waiting
  double profiled_ms = 0;     // of a step, all phases together
  struct Op {
    std::string name;
    std::int64_t calls = 0;
    double forward_ms = 0, backward_ms = 0;
    // What it does in this time, as a share of what its thread could do: matrix products, none without any, and
    // the least that both passes read and write.
    std::optional<double> share_of_fma{};
    double share_of_memory = 0;
  };
  std::vector<Op> ops;  // by time, longest first
};

// Trains `warmup` steps and then `steps` timed ones, both at least 1, without writing anything. All ranks must
// call it.
Benchmark benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps,
                    Ranks& ranks = one_process());

// Does that in the precision R, float or double, without comparing the options of ranks.
template <class R>
Benchmark run_benchmark(const OpenConfig& config, std::int64_t warmup, std::int64_t steps, Ranks& ranks);

}  // namespace thimble
