// Measures how fast a config trains, and where its time goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/ranks.h"

namespace thimble {

// The times of training steps.
struct Benchmark {
  std::vector<double> step_ms;  // milliseconds of whole steps: data, forward, backward, clipping, optimizer
  double flops_per_step = 0;    // of matrix products, see StepCost
  double fma_flops = 0;         // FLOP per second of multiply-adds on registers alone, on the same threads
  double memory_bandwidth = 0;  // bytes per second of copying beyond the caches, read and written
  double blas_flops = 0;        // FLOP per second of a 2048 x 2048 x 2048 product by OpenBLAS; 0 without it
  std::int64_t peak_bytes = 0;  // of the process, before that product
  int threads = 0;
  double tokens_per_s = 0;  // drawn by a model of task text, see draw_texts(); 0: another task

  // With several ranks, on rank 0.
  int ranks = 1;
  std::vector<double> wait_ms;  // milliseconds of each timed step in which this rank waited for others
  double bytes_sent = 0, messages_sent = 0;  // per step
  double latency_us = 0, bandwidth = 0;  // of a message without content, and bytes per second of large ones
  double one_rank_ms = 0;                // median step of a single rank, while the others are idle

  // Milliseconds per step, summed over threads, measured on further steps, as profiling takes time.
  struct Phase {
    std::string name;
    double ms = 0;
  };
  std::vector<Phase> phases;
  // Mean milliseconds of the profiled steps; times the threads, it is the sum of the phases and of waiting.
  double profiled_step_ms = 0;
  struct Op {
    std::string name;
    std::int64_t calls = 0;
    double forward_ms = 0, backward_ms = 0;
    double flops = 0;    // of matrix products in both passes, per step
    double traffic = 0;  // bytes that both passes read and write at least, per step
  };
  std::vector<Op> ops;  // by time, longest first
};

// Trains `warmup` steps and then `steps` timed ones, both at least 1, without writing anything. All ranks must
// call it.
Benchmark benchmark(const Config& config, std::int64_t warmup, std::int64_t steps,
                    Ranks& ranks = one_process());

}  // namespace thimble
