#include "addons/cluster/slurm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>

#include "program/sweep/sweep_state.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/path.h"
#include "train/files/text/text.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Runs a command of Slurm and returns its output. Throws CheckpointError with the output if it fails.
std::string slurm_output(const std::vector<std::string>& command) {
  std::FILE* output = ::popen((shell_command(command) + " 2>&1 </dev/null").c_str(), "re");
  require<CheckpointError>(output != nullptr, "{}: cannot be started: {}", command[0], system_message(errno));
  std::string text;
  char buffer[4096];
  for (std::size_t size; (size = std::fread(buffer, 1, sizeof buffer, output)) > 0;)
    text.append(buffer, size);
  const int status = ::pclose(output);
  if (status == 0) return text;
  text.erase(text.find_last_not_of('\n') + 1);
  std::ranges::replace(text, '\n', ' ');
  throw CheckpointError(fmt::format("{} failed: {}", command[0], printable(text)));
}

// Returns the most tasks that an array may have: MaxArraySize is above the highest number of a task. Without
// Slurm on this machine, its default.
std::int64_t max_tasks(bool required) {
  constexpr std::int64_t kDefault = 1000;
  std::string text;
  try {
    text = slurm_output({"scontrol", "show", "config"});
  } catch (const CheckpointError& e) {
    require<CheckpointError>(!required, "{}; submit on a machine of a Slurm cluster, or leave out --slurm",
                             e.what());
    return kDefault;
  }
  const std::size_t key = text.find("MaxArraySize"), begin = text.find_first_not_of("= ", key + 12);
  const auto size =
      key == std::string::npos || begin == std::string::npos
          ? std::nullopt
          : parse_number<std::int64_t>(text.substr(begin, text.find_first_of(" \n", begin) - begin));
  require<CheckpointError>(size && *size > 1, "scontrol show config: no MaxArraySize above 1 in its output");
  return *size - 1;
}

// Returns how many runs train at the same time at most: those that are missing, and with halving, for each
// step that comes, those of the settings that are left then.
std::vector<std::int64_t> stages(const Sweep& sweep, const std::vector<SweepRun>& runs) {
  std::set<std::size_t> settings;
  std::int64_t missing = 0;
  for (const SweepRun& run : runs) {
    if (run.status == RunStatus::stopped) continue;
    settings.insert(run.setting);
    missing += is_finished(run) || run.reached || run.status == RunStatus::running ? 0 : 1;
  }
  if (settings.empty()) return {missing};
  const auto seeds = std::ssize(runs) / std::max<std::int64_t>(1, std::ssize(sweep.settings));
  const auto next = std::ranges::find_if(runs, [](const SweepRun& run) { return run.stop_after > 0; });
  std::vector<std::int64_t> counts{missing};
  if (next == runs.end()) return counts;
  auto left = std::ssize(settings);
  for (const std::int64_t step : sweep.halving.steps) {
    if (step < next->stop_after) continue;
    left = (left + sweep.halving.reduction_factor - 1) / sweep.halving.reduction_factor;
    counts.push_back(left * seeds);
  }
  return counts;
}

std::string script_of(const SubmitOptions& options, std::int64_t runs_per_task) {
  std::vector<std::string> command = options.task;
  command.push_back(fmt::format("--max-runs={}", runs_per_task));
  return fmt::format(R"(#!/bin/sh
# A task of a sweep: trains {} that no other task has claimed.
# USR1 comes before the time limit: what was trained is saved, and the task is queued again. TERM comes to every process
# of a task that is preempted or canceled; the same signal twice would end the sweep before it has saved.
cd {} || exit 2
{} &
sweep=$!
trap 'signaled=1 requeue=1; kill -TERM $sweep' USR1
trap 'signaled=1; kill -INT $sweep' TERM
while
  signaled=
  wait $sweep
  status=$?
  [ -n "$signaled" ]
do :; done
if [ -n "$requeue" ] && [ $status -eq 130 ]; then
  exec scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
)",
                     runs_per_task == 1 ? "a run" : fmt::format("up to {} runs", runs_per_task),
                     shell_command({fs::current_path().string()}), shell_command(command));
}

// Returns the pattern of a path that Slurm expands to the path.
std::string unexpanded(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

// Returns the call of sbatch for an array of that many tasks, without the script.
std::vector<std::string> sbatch_command(std::int64_t tasks, const Sweep& sweep, const fs::path& directory,
                                        const SubmitOptions& options) {
  const std::string absolute = fs::absolute(directory).lexically_normal().string();
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      fmt::format("--job-name={}", fs::path(sweep.file).stem().string()),
                                      fmt::format("--array=1-{}", tasks),
                                      fmt::format("--output={}", unexpanded(absolute) + "/slurm-%A_%a.log"),
                                      "--open-mode=append",
                                      "--requeue",
                                      "--signal=B:USR1@60"};
  command.insert(command.end(), options.options.begin(), options.options.end());
  return command;
}

// Returns the ids of the jobs that were submitted.
std::vector<std::string> submitted_jobs(const fs::path& directory) {
  const fs::path file = directory / "slurm.json";
  if (!fs::exists(file)) return {};
  try {
    return read_json(file).at("jobs").get<std::vector<std::string>>();
  } catch (const Json::exception& e) {
    throw CheckpointError(fmt::format("{}: invalid: {}; remove the file", file.string(), e.what()));
  }
}

}  // namespace

Submission submit_sweep(const Sweep& sweep, const SweepOptions& sweep_options, const SubmitOptions& options) {
  Submission out;
  std::vector<SweepRun> runs = plan_runs(sweep);
  out.directory = sweep_options.directory;
  if (out.directory.empty()) out.directory = sweep_directory(sweep, runs);
  require_same_sweep(out.directory, sweep, runs);
  const std::string queued = slurm_state(out.directory);
  require<CheckpointError>(
      queued.empty(), "{}: its Slurm jobs have not ended: {}; wait for them, or cancel them with scancel {}",
      out.directory.string(), queued, fmt::join(submitted_jobs(out.directory), " "));
  const std::int64_t tasks = max_tasks(!options.dry_run);  // throws without Slurm, before anything is written
  read_state(out.directory, sweep.halving, runs);
  if (!options.dry_run) {
    fs::create_directories(out.directory / "runs");
    write_sweep_json(out.directory, sweep, runs);
    forget_failures(out.directory, sweep.halving, runs);
  }
  const std::vector<std::int64_t> counts = stages(sweep, runs);
  const std::int64_t most = std::ranges::max(counts);
  if (most == 0) return out;
  const std::int64_t per_task = (most + tasks - 1) / tasks;
  out.script = script_of(options, per_task);
  const std::string script = fs::absolute(out.directory / "slurm.sh").lexically_normal().string();
  if (!options.dry_run) write_file(script, out.script);
  std::vector<std::string> jobs;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    Submission::Array array{
        .id = "", .command = "", .tasks = (count + per_task - 1) / per_task, .runs_per_task = per_task};
    std::vector<std::string> command = sbatch_command(array.tasks, sweep, out.directory, options);
    if (!jobs.empty()) command.push_back("--dependency=afterany:" + jobs.back());
    command.push_back(script);
    array.command = shell_command(command);
    if (!options.dry_run) {
      const std::string answer = slurm_output(command);  // ID or ID;CLUSTER
      array.id = answer.substr(0, answer.find_first_of(";\n"));
      jobs.push_back(array.id);
      write_file(out.directory / "slurm.json", json_text({{"jobs", jobs}}, 2) + "\n");
    }
    out.arrays.push_back(std::move(array));
  }
  return out;
}

std::string slurm_state(const fs::path& directory) {
  const std::vector<std::string> jobs = submitted_jobs(directory);
  if (jobs.empty()) return "";
  std::string text;
  try {
    text = slurm_output(
        {"squeue", "--noheader", "--array", "--format=%T", fmt::format("--jobs={}", fmt::join(jobs, ","))});
  } catch (const CheckpointError&) {  // no Slurm here, or it has forgotten the jobs
    return "";
  }
  std::map<std::string, std::int64_t> counts;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    ++counts[text.substr(begin, end - begin)];
  std::string out;
  for (const auto& [state, count] : counts) {
    out += fmt::format("{}{} ", out.empty() ? "" : ", ", count);
    for (const char c : state) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

}  // namespace thimble
