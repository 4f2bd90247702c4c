#include "program/bench/against.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/statistics.h"
#include "train/files/process.h"
#include "train/files/progress.h"

namespace thimble {

namespace {

constexpr std::size_t kPairs = 7, kOutside = 2;  // the means that are beyond either end of the interval

double median_step(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  for (const char* option : {"--quiet", "--json", "-"}) command.emplace_back(option);
  const auto output = std::filesystem::temp_directory_path() / fmt::format("thimble-bench-{}", ::getpid());
  const pid_t child = start_process(command, output);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  const int status = exit_status(child).value_or(-1);
  const std::string text = read_file(output);
  std::filesystem::remove(output);
  try {
    if (status == 0) return parse_json(text).at("step_ms").at("median").get<double>();
  } catch (const Json::exception&) {
    // What it printed is no result of bench.
  }
  throw ConfigError(fmt::format(
      "{}: ended with exit status {} and no step time; its `bench` must take the same arguments; it printed:\n{}",
      program, status, text));
}

}  // namespace

SpeedComparison compare_speed(const std::vector<std::string>& arguments, const std::string& other) {
  require<ConfigError>(std::filesystem::is_regular_file(other) && ::access(other.c_str(), X_OK) == 0,
                       "--against {}: is no program that can be run; give the path of another build", other);
  SpeedComparison result;
  ProgressCounter progress("comparing programs", 2 * kPairs);
  const auto time = [&](const std::string& program, std::vector<double>& ms) {
    ms.push_back(median_step(program, arguments));
    progress.advance();
  };
  std::vector<double> logs, means;
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    if (pair % 2 == 0) time("/proc/self/exe", result.step_ms);
    time(other, result.other_step_ms);
    if (pair % 2 == 1) time("/proc/self/exe", result.step_ms);
    logs.push_back(std::log(result.other_step_ms[pair] / result.step_ms[pair]));
    for (const double log : logs) means.push_back((log + logs.back()) / 2);
  }
  std::ranges::sort(means);
  result.ratio = std::exp(quantile(means, 0.5));
  result.low = std::exp(means[kOutside]);
  result.high = std::exp(means[means.size() - 1 - kOutside]);
  return result;
}

}  // namespace thimble
