#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace thimble::cli {

namespace {

struct Arguments {
  ConfigArguments config;
  Output output;
  std::int64_t steps = 100;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

int run(const Arguments& arguments) {
  const Config config = arguments.config.load();
  const std::vector<double> times =
      time_steps(config, std::max<std::int64_t>(5, arguments.steps / 10), arguments.steps);
  const double middle = median(times);
  std::vector<double> deviations;
  for (const double t : times) deviations.push_back(std::abs(t - middle));
  const double per_second = 1e3 * static_cast<double>(config.train.batch) / middle;
  const double spread = median(deviations), fastest = std::ranges::min(times);
  if (arguments.output.talks()) {
    fmt::print("step        {:.3f} ms median, {:.3f} ms fastest, {:.3f} ms median absolute deviation\n",
               middle, fastest, spread);
    fmt::print("throughput  {:.0f} sequences/s\n", per_second);
  }
  arguments.output.write({{"step_ms", {{"median", middle}, {"min", fastest}, {"mad", spread}}},
                          {"sequences_per_s", per_second}});
  return kDone;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("bench", "Time training steps of a config; writes no run");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command);
  command->add_option("--steps", arguments->steps, "Steps to time, after a tenth as many to warm up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--threads", arguments->config.threads, "Threads, 0 for every core")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  arguments->output.add_to(*command);
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace thimble::cli
