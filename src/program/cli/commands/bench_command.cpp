#include <algorithm>
#include <cmath>

#include "program/bench/benchmark.h"
#include "program/cli/cli.h"
#include "program/cli/memory.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/train/dataset.h"
#include "thimble/train/generation.h"
#include "thimble/train/json.h"
#include "thimble/train/statistics.h"
#include "train/files/text/format.h"

namespace thimble::cli {

namespace {

struct BenchArguments {
  ConfigArguments config;
  Output output;
  std::int64_t steps = 100;
};

// Returns what is drawn at once to measure generation.
std::string drawn(const Config& config) {
  return config.task.text.documents == TextForm::stream
             ? fmt::format("one text of {} tokens", model_length(config.task, layout_of(config.model)))
             : fmt::format("{} documents at once", kSampledDocuments);
}

int run(const BenchArguments& arguments) {
  Ranks& ranks = start_ranks("bench", arguments.output);
  const ProgressMeter meter(arguments.output.quiet);
  const Config config = arguments.config.load();
  require_fit(training_memory(config, ranks.size()));
  const Benchmark b =
      benchmark(config, std::max<std::int64_t>(5, arguments.steps / 10), arguments.steps, ranks);
  const Spread times = spread(b.step_ms);
  const double ms = times.median;
  std::vector<double> deviations;
  for (const double t : b.step_ms) deviations.push_back(std::abs(t - ms));
  const double deviation = spread(deviations).median;
  const double wait = b.ranks > 1 ? spread(b.wait_ms).median : 0, efficiency = b.one_rank_ms / (b.ranks * ms);
  const double sequences = 1e3 * static_cast<double>(config.train.batch) / ms;
  const double gflops = 1e-6 * b.flops_per_step / ms, blas = 1e-9 * b.blas_flops, fma = 1e-9 * b.fma_flops;
  // What an op does in its time, as a share of what its thread could do at `peak` per second of all threads.
  const auto share = [&](const Benchmark::Op& op, double amount, double peak) {
    return 1e3 * amount / (op.forward_ms + op.backward_ms) / (peak / b.threads);
  };
  const auto fma_share = [&](const Benchmark::Op& op) -> Json {
    if (op.flops == 0) return nullptr;
    return share(op, op.flops, b.fma_flops);
  };
  const auto memory_share = [&](const Benchmark::Op& op) {
    return share(op, op.traffic, b.memory_bandwidth);
  };
  const double peak = static_cast<double>(b.peak_bytes) / (1 << 20);
  double waiting = b.threads * b.profiled_step_ms;
  Json phases, ops = Json::array();
  for (const auto& phase : b.phases) {
    phases[phase.name] = phase.ms;
    waiting -= phase.ms;
  }
  phases["waiting"] = std::max(0.0, waiting);
  for (const auto& op : b.ops)
    ops.push_back({{"op", op.name},
                   {"calls", op.calls},
                   {"forward_ms", op.forward_ms},
                   {"backward_ms", op.backward_ms},
                   {"share_of_fma_peak", fma_share(op)},
                   {"share_of_memory_bandwidth", memory_share(op)}});

  if (arguments.output.prints_text()) {
    const char* gemm = config.train.precision == Precision::float32 ? "sgemm" : "dgemm";
    print_out("step        {:.3f} ms median, {:.3f} ms fastest, median deviation {:.3f} ms\n", ms, times.min,
              deviation);
    if (b.ranks > 1) {
      print_out("ranks       {}; {:.3f} ms of a step waiting for other ranks (median)\n", b.ranks, wait);
      print_out("sent        {:.3f} MB a step by rank 0, in {:.0f} messages\n", 1e-6 * b.bytes_sent,
                b.messages_sent);
      print_out("messages    {:.0f} µs each, {:.0f} MB/s sent by a rank\n", b.latency_us, 1e-6 * b.bandwidth);
      print_out("efficiency  {:.2f}; one rank with {} takes {:.3f} ms\n", efficiency,
                counted(b.threads, "thread"), b.one_rank_ms);
    }
    print_out("throughput  {:.0f} sequences/s; {:.1f} GFLOP/s in matrix products\n", sequences, gflops);
    if (b.tokens_per_s > 0)
      print_out("generation  {:.0f} tokens/s on 1 thread, {}\n", b.tokens_per_s, drawn(config));
    print_out("FMA peak    {:.1f} GFLOP/s on {}; the step reaches {:.2f} of it\n", fma,
              counted(b.threads, "thread"), gflops / fma);
    if (blas > 0)
      print_out("{:<12}{:.1f} GFLOP/s by OpenBLAS; the step reaches {:.2f} of it\n", gemm, blas,
                gflops / blas);
    print_out("bandwidth   {:.1f} GB/s of memory, copying beyond the caches\n", 1e-9 * b.memory_bandwidth);
    print_out("memory      {:.1f} MiB at the peak\n\n", peak);
    const double all = b.threads * b.profiled_step_ms;
    print_out("{:<24}{:>12}{:>8}\n", "phase", "thread ms", "%");
    for (const auto& [name, time] : phases.items())
      print_out("{:<24}{:>12.3f}{:>8.1f}\n", name, time.get<double>(), 100 * time.get<double>() / all);
    print_out("\n{:<16}{:>8}{:>12}{:>12}{:>8}{:>8}{:>11}\n", "op", "calls", "forward ms", "backward ms", "%",
              "of FMA", "of memory");
    for (const auto& op : b.ops) {
      const Json fma_peak = fma_share(op);
      print_out("{:<16}{:>8}{:>12.3f}{:>12.3f}{:>8.1f}{:>8}{:>11.2f}\n", op.name, op.calls, op.forward_ms,
                op.backward_ms, 100 * (op.forward_ms + op.backward_ms) / all,
                fma_peak.is_null() ? "" : fmt::format("{:.2f}", fma_peak.get<double>()), memory_share(op));
    }
  }
  Json result{{"step_ms", {{"median", ms}, {"min", times.min}, {"mad", deviation}, {"count", times.count}}},
              {"sequences_per_s", sequences},
              {"gflops", gflops},
              {"fma_peak_gflops", fma},
              {"share_of_fma_peak", gflops / fma},
              {"memory_bandwidth_gb_per_s", 1e-9 * b.memory_bandwidth},
              {"peak_rss_mb", peak},
              {"threads", b.threads},
              {"phases_ms", phases},
              {"ops", ops}};
  if (b.tokens_per_s > 0) result["generated_tokens_per_s"] = b.tokens_per_s;
  if (blas > 0) {
    result["sgemm_gflops"] = blas;
    result["share_of_sgemm"] = gflops / blas;
  }
  if (b.ranks > 1) {
    result["ranks"] = b.ranks;
    result["wait_ms"] = wait;
    result["bytes_sent_per_step"] = b.bytes_sent;
    result["latency_us"] = b.latency_us;
    result["bandwidth_mb_per_s"] = 1e-6 * b.bandwidth;
    result["messages_sent_per_step"] = b.messages_sent;
    result["one_rank_ms"] = b.one_rank_ms;
    result["efficiency"] = efficiency;
  }
  arguments.output.write(result);
  return kDone;
}

}  // namespace

void add_bench(Command& program) {
  Command& command = program.add_command("bench", "Time training steps of a config, without saving a run");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->config.add_to(command);
  command.add_option("--steps", arguments->steps, "Steps to time, after a tenth as many warm-up steps")
      .between(1, 1'000'000'000)
      .shows_default()
      .value_name("N");
  command.add_option("--threads", arguments->config.threads, "Threads (0 = all cores)")
      .between(0, 4096)
      .value_name("N");
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
