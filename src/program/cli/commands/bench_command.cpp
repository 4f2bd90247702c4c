#include <algorithm>
#include <cstdlib>
#include <utility>

#include "program/bench/against.h"
#include "program/bench/benchmark.h"
#include "program/cli/cli.h"
#include "program/cli/find_config.h"
#include "program/cli/text/progress.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "thimble/train/dataset.h"
#include "thimble/train/generation.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/run_state.h"
#include "thimble/train/statistics.h"
#include "thimble/train/train.h"
#include "train/files/stopwatch.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"
#include "train/step/cost.h"

namespace thimble::cli {

namespace {

struct BenchArguments {
  ConfigArguments config;
  Output output;
  std::int64_t steps = 100;
  std::string against, until;
};

// Measures the time until an evaluation of the validation split reaches the target, and stops training there.
struct TimeToTarget : Progress {
  using Progress::Progress;
  void on_validation(std::int64_t step, const EvalResult& result) override {
    seconds = timer.seconds();
    is_reached = reached(target, result);
    Progress::on_validation(step, result);
  }
  bool wants_stop() override { return is_reached; }

  TargetConfig target;
  Stopwatch timer;
  double seconds = 0;  // until the last evaluation ended
  bool is_reached = false;
};

int run_until(BenchArguments arguments) {
  require<ConfigError>(arguments.until.starts_with("loss=") || arguments.until.starts_with("accuracy="),
                       "--until {}: must be loss=X or accuracy=X", printable(arguments.until));
  Ranks& ranks = start_ranks("bench", arguments.output);
  const ProgressMeter meter(arguments.output.quiet);
  arguments.config.overrides.push_back("train.target." + arguments.until);
  OpenConfig config = arguments.config.load();
  TimeToTarget time(arguments.output.quiet);
  config.train.evaluate_every = evaluation_interval(config.train, split_sizes(config).validation);
  time.target = std::exchange(config.train.target, {});
  (arguments.until.starts_with("loss") ? time.target.accuracy : time.target.loss) = 0;
  require<ConfigError>(has_target(time.target) && split_sizes(config).validation > 0,
                       "--until {}: must be above 0, and the validation split not empty", arguments.until);
  config.train.patience = config.train.sample_every = 0;
  require_fit(training_memory(config, ranks.size()));
  const TrainResult trained = train(config, {.directory = {}, .observer = &time, .ranks = &ranks});
  if (arguments.output.prints_text())
    print_out("{:<12}{} {} in {:.2f} s\n{}\n", time.is_reached ? "reached" : "not reached",
              time.is_reached ? "at step" : "by step", trained.steps, time.seconds,
              describe("validation", *trained.validation, config));
  arguments.output.write({{"reached", time.is_reached},
                          {"steps", trained.steps},
                          {"seconds", time.seconds},
                          {"validation", to_json(*trained.validation)}});
  return time.is_reached ? kDone : kCheckFailed;
}

int run_against(const BenchArguments& arguments) {
  require<ConfigError>(start_ranks("bench", arguments.output).size() == 1,
                       "--against: compares programs of one process; start it without ranks");
  const ProgressMeter meter(arguments.output.quiet);
  arguments.config.load();  // throws if the config has a problem
  std::vector<std::string> command{"bench", find_config(arguments.config.file),
                                   fmt::format("--steps={}", arguments.steps)};
  std::ranges::copy(arguments.config.overrides, std::back_inserter(command));
  if (arguments.config.threads >= 0) command.push_back(fmt::format("--threads={}", arguments.config.threads));
  const SpeedComparison c = compare_speed(command, arguments.against);
  if (arguments.output.prints_text())
    print_out(
        "this        {:.3f} ms, median of {} pairs\nother       {:.3f} ms\n"
        "other/this  {:.3f}, 95 % interval {:.3f} to {:.3f}; above 1 this program is faster\n",
        spread(c.step_ms).median, c.step_ms.size(), spread(c.other_step_ms).median, c.ratio, c.low, c.high);
  arguments.output.write({{"step_ms", c.step_ms},
                          {"other_step_ms", c.other_step_ms},
                          {"ratio", c.ratio},
                          {"interval", {c.low, c.high}}});
  return kDone;
}

// Warns of variables in whose place OpenBLAS would choose by the CPU.
void warn_of_openblas() {
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"})
    if (const char* value = std::getenv(name); value != nullptr)
      print_err("thimble: {}={} is set, which OpenBLAS would choose by the CPU, for speed; unset {}\n", name,
                value, name);
}

// Returns what is drawn at once to measure generation.
std::string drawn(const OpenConfig& config) {
  return config.task.text.documents == TextForm::stream
             ? fmt::format("one text of {} tokens", model_sizes(config).length)
             : fmt::format("{} documents at once", kSampledDocuments);
}

int run(const BenchArguments& arguments) {
  Ranks& ranks = start_ranks("bench", arguments.output);
  const ProgressMeter meter(arguments.output.quiet);
  const OpenConfig config = arguments.config.load();
  require_fit(training_memory(config, ranks.size()));
  const Benchmark b =
      benchmark(config, std::max<std::int64_t>(5, arguments.steps / 10), arguments.steps, ranks);
  const double ms = b.step_ms.median;
  if (b.blas_gflops > 0 && !arguments.output.quiet) warn_of_openblas();
  if (arguments.output.prints_text()) {
    const char* gemm = config.train.precision == Precision::float32 ? "sgemm" : "dgemm";
    print_out("step        {:.3f} ms median, {:.3f} ms fastest, median deviation {:.3f} ms\n", ms,
              b.step_ms.min, b.step_deviation_ms);
    if (b.ranks > 1) {
      print_out("ranks       {}; {:.3f} ms of a step waiting for other ranks (median)\n", b.ranks, b.wait_ms);
      print_out("sent        {:.3f} MB a step by rank 0, in {:.0f} messages\n", 1e-6 * b.bytes_sent,
                b.messages_sent);
      print_out("messages    {:.0f} µs each, {:.0f} MB/s sent by a rank\n", b.latency_us,
                b.bandwidth_mb_per_s);
      print_out("efficiency  {:.2f}; one rank with {} takes {:.3f} ms\n", b.efficiency,
                counted(b.threads, "thread"), b.one_rank_ms);
    }
    print_out("throughput  {:.0f} sequences/s; {:.1f} GFLOP/s in matrix products\n", b.sequences_per_s,
              b.gflops);
    if (b.tokens_per_s > 0)
      print_out("generation  {:.0f} tokens/s on 1 thread, {}\n", b.tokens_per_s, drawn(config));
    print_out("FMA peak    {:.1f} GFLOP/s on {}; the step reaches {:.2f} of it\n", b.fma_gflops,
              counted(b.threads, "thread"), b.gflops / b.fma_gflops);
    if (b.blas_gflops > 0)
      print_out("{:<12}{:.1f} GFLOP/s by OpenBLAS ({}); the step reaches {:.2f} of it\n", gemm, b.blas_gflops,
                b.blas_kernel, b.gflops / b.blas_gflops);
    print_out("bandwidth   {:.1f} GB/s of memory, copying beyond the caches\n", b.memory_gb_per_s);
    print_out("memory      {:.1f} MiB at the peak\n\n", b.peak_mib);
    print_out("{:<24}{:>12}{:>8}\n", "phase", "thread ms", "%");
    for (const auto& [name, time] : b.phases)
      print_out("{:<24}{:>12.3f}{:>8.1f}\n", name, time, 100 * time / b.profiled_ms);
    print_out("\n{:<16}{:>8}{:>12}{:>12}{:>8}{:>8}{:>11}\n", "op", "calls", "forward ms", "backward ms", "%",
              "of FMA", "of memory");
    for (const auto& op : b.ops)
      print_out("{:<16}{:>8}{:>12.3f}{:>12.3f}{:>8.1f}{:>8}{:>11.2f}\n", op.name, op.calls, op.forward_ms,
                op.backward_ms, 100 * (op.forward_ms + op.backward_ms) / b.profiled_ms,
                op.share_of_fma ? fmt::format("{:.2f}", *op.share_of_fma) : "", op.share_of_memory);
  }
  Json phases, ops = Json::array();
  for (const auto& [name, time] : b.phases) phases[name] = time;
  for (const auto& op : b.ops)
    ops.push_back({{"op", op.name},
                   {"calls", op.calls},
                   {"forward_ms", op.forward_ms},
                   {"backward_ms", op.backward_ms},
                   {"share_of_fma_peak", or_null(op.share_of_fma)},
                   {"share_of_memory_bandwidth", op.share_of_memory}});
  Json result{
      {"step_ms",
       {{"median", ms}, {"min", b.step_ms.min}, {"mad", b.step_deviation_ms}, {"count", b.step_ms.count}}},
      {"sequences_per_s", b.sequences_per_s},
      {"gflops", b.gflops},
      {"fma_peak_gflops", b.fma_gflops},
      {"share_of_fma_peak", b.gflops / b.fma_gflops},
      {"memory_bandwidth_gb_per_s", b.memory_gb_per_s},
      {"peak_rss_mb", b.peak_mib},
      {"threads", b.threads},
      {"phases_ms", phases},
      {"ops", ops}};
  if (b.tokens_per_s > 0) result["generated_tokens_per_s"] = b.tokens_per_s;
  if (b.blas_gflops > 0) {
    result["sgemm_gflops"] = b.blas_gflops;
    result["openblas_kernel"] = b.blas_kernel;
    result["share_of_sgemm"] = b.gflops / b.blas_gflops;
  }
  if (b.ranks > 1) {
    result["ranks"] = b.ranks;
    result["wait_ms"] = b.wait_ms;
    result["bytes_sent_per_step"] = b.bytes_sent;
    result["latency_us"] = b.latency_us;
    result["bandwidth_mb_per_s"] = b.bandwidth_mb_per_s;
    result["messages_sent_per_step"] = b.messages_sent;
    result["one_rank_ms"] = b.one_rank_ms;
    result["efficiency"] = b.efficiency;
  }
  arguments.output.write(result);
  return kDone;
}

}  // namespace

void add_bench(Command& program) {
  Command& command = program.add_command("bench", "Time training steps of a config, without saving a run");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->config.add_to(command);
  Option& steps =
      command.add_option("--steps", arguments->steps, "Steps to time, after a tenth as many warm-up steps");
  steps.between(1, 1'000'000'000).shows_default();
  Option& until = command.add_option("--until", arguments->until,
                                     "Time training until validation has loss=X or accuracy=X");
  until.value_name("KEY=X").excludes(steps);
  command.add_option("--against", arguments->against, "Compare step times with another build, in 7 pairs")
      .value_name("PROGRAM", Value::file)
      .excludes(until);
  command.add_option("--threads", arguments->config.threads, "Threads (0 = all cores)").between(0, 4096);
  arguments->output.add_to(command);
  command.action([arguments] {
    if (!arguments->until.empty()) return run_until(*arguments);
    return arguments->against.empty() ? run(*arguments) : run_against(*arguments);
  });
}

}  // namespace thimble::cli
