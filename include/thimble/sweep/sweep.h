// A sweep: several settings of one config, each to be trained with several seeds. Read from YAML:
//
//   config: ../reverse.yaml            # relative to the sweep file
//   list:                              # one setting each
//     - {model.layers: 1}
//     - {model.layers: 2, model.norm: pre}
//   grid: {model.heads: [1, 2]}        # every combination, with each entry of the list
//   seeds: [42, 43, 44]                # of train.seed; default: the config's own
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/config/config.h"

namespace thimble {

struct SweepSetting {
  std::string file;                    // path of its config
  std::vector<std::string> overrides;  // "a.b.c=value"; the list's, then the grid's in the order of the file
  Config config;                       // with them
};

struct Sweep {
  std::string file, config;            // paths
  std::vector<std::string> overrides;  // of every setting, from the command line
  std::vector<SweepSetting> settings;  // entries of the list outside, last key of the grid fastest
  std::vector<std::uint64_t> seeds;    // empty: each config's own
};

// More runs are taken for a mistake.
inline constexpr std::int64_t kMaxSweepRuns = 10000;

// Reads a sweep and checks the config of every setting. `overrides` change the config below all settings and
// may not name what the sweep varies. Throws one ConfigError with every problem, as load_config does: also
// for settings whose config is that of another one, and for train.threads, since a run has one thread.
Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace thimble
