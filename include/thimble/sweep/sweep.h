// A sweep: several settings of one config, each to be trained with several seeds. Read from YAML:
//
//   config: ../reverse.yaml            # relative to the sweep file
//   list:                              # one setting each
//     - {model.layers: 1}
//     - {model.layers: 2, model.norm: pre}
//   grid: {model.heads: [1, 2]}        # every combination, for each entry of the list
//   seeds: [42, 43, 44]                # of train.seed; default: the config's own
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/config/config.h"

namespace thimble {

// A setting of a sweep: a config with changes.
struct SweepSetting {
  std::string file;                    // path of its config
  std::vector<std::string> overrides;  // "a.b.c=value": those of the list, then those of the grid
  Config config;                       // with the changes
};

struct Sweep {
  std::string file, config;            // paths
  std::vector<std::string> overrides;  // of all settings, from the command line
  std::vector<SweepSetting>
      settings;  // by entry of the list; within it, the last key of the grid varies fastest
  std::vector<std::uint64_t> seeds;  // empty: the seed of each config
};

// The most runs of a sweep; more are probably a mistake.
inline constexpr std::int64_t kMaxSweepRuns = 10000;

// Reads a sweep and opens the config of every setting. `overrides` apply to the config before all settings,
// and must not set keys of the sweep. Throws one ConfigError with every problem, as open_config does; equal
// settings are a problem, and so is train.threads, since a run has one thread.
Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace thimble
