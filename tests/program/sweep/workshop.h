// A sweep whose runs are those of a shell script, in the place of thimble.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/run_sweep.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/files/temporary_directory.h"
#include "train/runs/hand_made_run.h"

namespace thimble {

// The start of the script, in place of training: $out is the run's directory, $* its arguments.
inline constexpr const char* kScript = R"sh(#!/bin/sh
for argument; do
  [ "$option" != --out ] || out=$argument
  option=$argument
done
echo "$*" >>"$(dirname "$0")/calls"
finish() {
  mkdir -p "$out"
  cp "$(dirname "$0")/summaries/$(basename "$out")" "$out/summary.json"
}
)sh";

// The result of every run.
inline const Json kResult{{"steps", 5}, {"test", {{"loss", 0.5}}}, {"weights_hash", "of 5 steps"}};

// A folder with a config, a sweep of it, and a script in place of thimble.
struct Workshop {
  TemporaryDirectory directory;
  Sweep sweep;
  SweepOptions options;

  explicit Workshop(const std::string& text = "grid: {model.heads: [1, 2]}\nseeds: [7, 8]\n") {
    write_file(directory / "base.yaml", "model: {d_model: 32}\n");
    write_file(directory / "s.yaml", "config: base.yaml\n" + text);
    load();
    options.directory = directory / "out";
    options.program = directory / "script";
    script("finish");
  }
  void load() {
    sweep = load_sweep((directory / "s.yaml").string());
    std::filesystem::create_directories(directory / "summaries");
    for (const SweepRun& run : plan_runs(sweep))
      write_file(summary(run.name), summary_text(kResult, run.identity));
  }
  std::filesystem::path summary(const std::string& run) const { return directory / "summaries" / run; }
  void script(const std::string& commands) const {
    write_file(options.program, kScript + commands + "\n");
    std::filesystem::permissions(options.program, std::filesystem::perms::owner_all);
  }
  SweepResult run() const { return run_sweep(sweep, options); }
  Json json() const { return parse_json(read_file(directory / "out/sweep.json")); }
  std::string calls() const { return read_file(directory / "calls"); }
  std::string refusal() const {
    try {
      run();
    } catch (const CheckpointError& e) {
      return e.what();
    }
    return "";
  }
};

inline std::string statuses(const std::vector<SweepRun>& runs) {
  std::string out;
  for (const SweepRun& run : runs)
    out += std::string(out.empty() ? "" : ", ") + std::string(name(run.status));
  return out;
}

}  // namespace thimble
