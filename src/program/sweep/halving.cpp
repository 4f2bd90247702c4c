#include "program/sweep/halving.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>

#include "thimble/engine/error.h"
#include "thimble/train/run_directory.h"

namespace thimble {

namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

// Returns the mean of the losses at a step, by setting. Empty if a run has no loss yet.
std::map<std::size_t, double> mean_losses(std::span<const SweepRun* const> runs, std::size_t at) {
  std::map<std::size_t, double> sums, counts;
  for (const SweepRun* run : runs) {
    if (run->losses.size() <= at) return {};
    sums[run->setting] += run->losses[at];
    ++counts[run->setting];
  }
  for (auto& [setting, sum] : sums) sum /= counts[setting];
  return sums;
}

// Returns the settings that go on, in order of their losses.
std::vector<std::size_t> best_settings(const std::map<std::size_t, double>& losses, std::int64_t factor) {
  std::vector<std::size_t> settings;
  for (const auto& [setting, loss] : losses) settings.push_back(setting);
  std::ranges::stable_sort(settings, {}, [&](std::size_t setting) { return losses.at(setting); });
  const auto all = std::ssize(settings);
  settings.resize(static_cast<std::size_t>((all + factor - 1) / factor));
  return settings;
}

}  // namespace

std::vector<double> halving_losses(const Halving& halving, const RunDirectory& run, const RunState& newest,
                                   bool ended) {
  std::vector<double> losses;
  std::map<std::int64_t, double> known = newest.stops;
  const auto is_missing = [&](std::int64_t step) { return step <= newest.step && !known.contains(step); };
  if (std::ranges::any_of(halving.steps, is_missing)) {
    std::vector<std::string> remarks;
    const auto add = [&](const Json& line) {
      if (line.at("split") == "validation" && line.contains("loss") && line.at("loss").is_number())
        known.emplace(line.at("step"), line.at("loss"));
    };
    run.read_metrics(newest, add, remarks);
  }
  for (const std::int64_t step : halving.steps) {
    if (step > newest.step) break;
    require<CheckpointError>(
        known.contains(step),
        "{}: has no validation loss of step {}, by which halving decides, in its checkpoint or metrics.jsonl; restore the file, or remove the run, to train it again",
        run.name(), step);
    losses.push_back(known.at(step));
  }
  if (ended) losses.resize(halving.steps.size(), newest.validation ? newest.validation->loss : kWorst);
  return losses;
}

void apply_halving(const Halving& halving, std::vector<SweepRun>& runs) {
  std::vector<SweepRun*> left;
  for (SweepRun& run : runs) {
    run.stop_after = 0;
    run.reached = false;
    left.push_back(&run);
  }
  for (std::size_t at = 0; at < halving.steps.size(); ++at) {
    const std::map<std::size_t, double> losses = mean_losses({left.data(), left.size()}, at);
    if (losses.empty()) {
      for (SweepRun* run : left) {
        run->stop_after = halving.steps[at];
        run->reached = run->losses.size() > at;
        if (run->reached && run->status == RunStatus::interrupted) run->status = RunStatus::waiting;
      }
      return;
    }
    const std::vector<std::size_t> best = best_settings(losses, halving.reduction_factor);
    std::erase_if(left, [&](SweepRun* run) {
      if (std::ranges::find(best, run->setting) != best.end()) return false;
      if (is_finished(*run)) return true;
      run->status = RunStatus::stopped;
      run->error = fmt::format("validation loss {:.6g} at step {}", run->losses[at], halving.steps[at]);
      return true;
    });
  }
}

}  // namespace thimble
