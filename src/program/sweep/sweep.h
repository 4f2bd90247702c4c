// A sweep: several settings of one config, each to be trained with several seeds. Read from YAML:
//
//   config: ../reverse.yaml            # relative to the sweep file
//   list:                              # one setting each
//     - {model.layers: 1}
//     - {model.layers: 2, model.norm: pre}
//   grid: {model.heads: [1, 2]}        # every combination, for each entry of the list
//   seeds: [42, 43, 44]                # of train.seed; default: the config's own
//   random:                            # random search; the samples, with each entry of list and grid
//     samples: 20
//     seed: 7                          # default: 0
//     model.norm: [pre, post]          # one of the values
//     model.dropout: {uniform: [0, 0.3]}
//     train.optimizer.lr: {log_uniform: [1e-4, 1e-2]}
//     model.d_ff: {int_uniform: [16, 64]}
//   halving: {steps: [100, 200], reduction_factor: 2}   # successive halving, see Halving
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/train/config.h"

namespace thimble {

// A setting of a sweep: a config with changes.
struct SweepSetting {
  std::string file;                    // path of its config
  std::vector<std::string> overrides;  // "a.b.c=value": those of the list, then those of the grid
  OpenConfig config;                   // with the changes
};

// Successive halving (Jamieson & Talwalkar, "Non-stochastic best arm identification and hyperparameter
// optimization", AISTATS 2016): at each of the steps, the settings with the lowest validation loss go on, one
// of `reduction_factor`; the others stop.
struct Halving {
  std::vector<std::int64_t> steps;  // ascending; empty: no halving
  std::int64_t reduction_factor = 2;
};

struct Sweep {
  std::string file, config;            // paths
  std::vector<std::string> overrides;  // of all settings, from the command line
  std::vector<SweepSetting>
      settings;  // by entry of the list, point of the grid (the last key varies fastest) and sample
  std::vector<std::uint64_t> seeds;  // empty: the seed of each config
  Halving halving = {};
};

// The most runs of a sweep; more are probably a mistake.
inline constexpr std::int64_t kMaxSweepRuns = 10000;

// Reads a sweep and opens the config of every setting. `overrides` apply to the config before all settings,
// and must not set keys of the sweep. Throws one ConfigError with every problem, as open_config does; equal
// settings are a problem, and so is train.threads, since a run has one thread.
Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides = {});

// Returns a label for each setting: its overrides, without those that all settings share and with keys as
// short as possible: "heads=2 lr=0.001".
std::vector<std::string> setting_labels(std::span<const std::vector<std::string>> overrides);
std::vector<std::string> setting_labels(const Sweep&);

}  // namespace thimble
