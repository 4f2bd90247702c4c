#include "program/cli/cli.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "engine/core/portable_math.h"
#include "program/cli/cluster.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/files/process.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"
#include "train/files/text/width.h"

namespace thimble::cli {

void Output::add_to(Command& command) {
  command.group("Output");
  command.add_option("--json", json, "Write the result as JSON (- = standard output)").writable();
  command.add_flag("--quiet", quiet, "Print errors only");
}

void Output::write(const Json& result) const {
  if (json.empty() || is_silent()) return;
  write_result(json, escape_controls_in_json(json_text(result, 2) + "\n"));
}

void ModelArguments::add_to(Command& command, const std::string& subject_name,
                            const std::string& subject_help) {
  Option& argument = command.add_option("RUN", run, "Run directory").value_name("", Value::run);
  if (!subject_name.empty()) command.add_option(subject_name, subject, subject_help);
  command.group("Model");
  command.add_option("--checkpoint", checkpoint, "best, final, a step or a file (default: of the result)")
      .value_name("NAME");
  argument.replaced_by(
      command.add_option("--weights", weights, "Weights in a safetensors file, instead of RUN")
          .value_name("FILE", Value::file));
  command.add_option("--config", config, "Config of the weights (default: the one stored with them)")
      .value_name("FILE", Value::config);
  command.add_option("OVERRIDES", overrides, "Config overrides, such as task.length=20")
      .value_name("key=value", Value::key);
  command.group("Options");
  command.add_option("--threads", threads, "Threads (0 = all cores); never changes the result")
      .between(0, 4096);
}

std::string ModelArguments::take_subject(const std::string& name) {
  if (!weights.empty()) {
    if (subject) overrides.insert(overrides.begin(), *subject);
    subject = run.empty() ? std::nullopt : std::optional(std::exchange(run, ""));
  }
  require<ConfigError>(subject.has_value(), "missing {0}: give RUN {0}, or --weights FILE {0}", name);
  return *subject;
}

void ModelArguments::require_one_text(const std::string& input, const std::string& before) const {
  std::string text = input;
  for (const std::string& argument : overrides)
    if (argument.find('=') == std::string::npos) text += " " + argument;
  if (text == input) return;
  // Without a run, one of the arguments may be the run.
  const bool known = std::filesystem::is_directory(run);
  throw ConfigError(
      fmt::format("tokens are one argument; quote the tokens: {} \"{}\"", before, known ? text : "a b c"));
}

void warn_of_changes(const std::vector<FileChange>& changes) {
  for (const auto& [text, unreadable] : changes)
    print_err("thimble: {}\nthe splits are those of the {}; token ids are unchanged\n", text,
              unreadable ? "files that can be read" : "file as it is now");
}

void show_remarks(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) print_err("thimble: {}\n", remark);
}

ModelSource ModelArguments::open() const {
  const auto warned = [this](ModelSource model) {
    if (threads >= 0) model.config.train.threads = threads;
    require_no_outputs(model.config);
    warn_of_changes(model.changes);
    show_remarks(model.remarks);
    return model;
  };
  if (config.empty() && weights.empty()) {
    require<ConfigError>(!run.empty(), "missing RUN: give a run directory, or --weights FILE");
    std::error_code ignored;
    require<ConfigError>(!run.ends_with(".safetensors") || std::filesystem::is_directory(run, ignored),
                         "{}: is named like a file of weights, and no run directory; give --weights {}",
                         printable(run), shell_path(run));
    return warned(open_run(run, overrides, checkpoint));
  }
  require<ConfigError>(checkpoint.empty(),
                       "--checkpoint requires a run directory; --weights already names the file");
  require<ConfigError>(!weights.empty(), "--config requires --weights: give the weights file too");
  std::vector<std::string> changes = overrides;
  if (!run.empty())
    changes.insert(changes.begin(), run);  // with --weights, the first argument is an override
  return warned(open_weights(weights, config, changes));
}

void ConfigArguments::add_to(Command& command, bool required) {
  Option& config = command.add_option("CONFIG", file, "Config file (YAML), or the name of a bundled config")
                       .value_name("", Value::config);
  if (required) config.required();
  command.add_option("OVERRIDES", overrides, "Config overrides, such as model.layers=3")
      .value_name("key=value", Value::key);
}

OpenConfig ConfigArguments::load() const { return finished(open_config(file, overrides)); }

OpenConfig ConfigArguments::load(const RunDirectory& run) const {
  run.require_run();
  return finished(open_data(parse_config(run.config_text(), run.config_path().string(), overrides)));
}

OpenConfig ConfigArguments::finished(OpenConfig config) const {
  require_no_outputs(config);
  if (threads >= 0) config.train.threads = threads;
  return config;
}

Ranks& start_ranks(const std::string& command, const Output& output, const std::string& directory) {
  Ranks& ranks = cluster().ranks();
  if (ranks.rank() > 0) silence();
  const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
  ranks.require_equal<ConfigError>(
      {{"command", command}, {"--out", text(directory)}, {"--json", text(output.json)}},
      "start the same command for all ranks");
  return ranks;
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

Colors colors() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::string_view terminal = variable("TERM"), promise = variable("COLORTERM");
  const bool has_all = promise == "truecolor" || promise == "24bit" || terminal.ends_with("-direct");
  const bool is_plain = !variable("NO_COLOR").empty() || terminal.empty() || terminal == "dumb";
  return has_all && !is_plain && is_terminal(STDOUT_FILENO) ? Colors::all : Colors::none;
}

namespace {

volatile std::sig_atomic_t first_signal = 0;

// A launcher or Slurm may send SIGTERM to every process, beside the signal that a sweep sends to its runs.
extern "C" void on_signal(int signal) {
  if (first_signal == signal && insists(signal)) ::_exit(kInterrupted);
  if (!insists(first_signal)) first_signal = signal;
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : stop_signals()) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() { return first_signal != 0; }

bool warn_of_leak(const std::string& name, const EvalResult& report) {
  if (!report.leak) return false;
  print_err(
      "thimble: data leak: the {} loss, {:.6f} (standard error {:.1g}), is below {:.6f}, the lowest possible\n"
      "on unseen sequences of this task: targets leak into the input or the training split\n",
      name, report.loss, *report.loss_error, *report.leak);
  return true;
}

namespace {

// Returns a loss of a language model in the unit that its field uses: bits of a character or byte, or perplexity.
std::string describe_text(double loss, const Config& config) {
  const Tokenization tokens = config.task.input_tokens();
  if (tokens != Tokenization::characters && tokens != Tokenization::bytes)
    return fmt::format("perplexity {:.4g}", portable::exp(loss));
  return fmt::format("bits per {} {:.4f}", tokens == Tokenization::bytes ? "byte" : "character", bits(loss));
}

}  // namespace

std::string describe_reference(const EvalResult& report, const Config& config) {
  if (report.references) {
    const References& n = *report.references;
    std::string out;
    for (const auto& [loss, name] :
         {std::pair(n.unigram, "unigram"), {n.bigram, "bigram"}, {n.five_gram, "5-gram"}})
      out += fmt::format("{:<11} loss {:.6f}   {:<25}   {}\n", out.empty() ? "reference" : "", loss,
                         describe_text(loss, config), name);
    if (n.counted < n.of)
      out += fmt::format("{:<11} counted on the first {} of {} training tokens\n", "", grouped(n.counted),
                         grouped(n.of));
    return out;
  }
  if (!report.chance && !report.lowest_loss) return "";
  const std::string loss = report.lowest_loss ? fmt::format("loss {:.6f}", *report.lowest_loss) : "";
  const std::string tokens = report.chance ? fmt::format("tokens {:6.2f} %", 100 * *report.chance) : "";
  const char* what = !report.chance        ? "lowest possible loss"
                     : !report.lowest_loss ? "chance"
                                           : "lowest possible loss, and chance";
  return fmt::format("{:<11} {:<13}   {:<15}   {}\n", "reference", loss, tokens, what);
}

void warn_of_chance(const std::string& name, const EvalResult& report) {
  if (report.references && report.loss >= report.references->five_gram)
    print_err(
        "{}",
        wrapped(
            fmt::format(
                "thimble: no better than a 5-gram: {} loss {:.4f}, and {:.4f} of a model that counts what follows 4 tokens; try more train.steps or a larger model",
                name, report.loss, report.references->five_gram),
            80));
  if (!report.no_better_than_chance()) return;
  const double error = report.accuracy_margin();
  const std::string text = fmt::format(
      "thimble: no better than chance: {} tokens {:.2f} % (95 % CI {:.2f}–{:.2f} %), chance {:.2f} %; try another train.optimizer.lr or more train.steps",
      name, 100 * report.accuracy, 100 * std::max(0.0, report.accuracy - error),
      100 * std::min(1.0, report.accuracy + error), 100 * *report.chance);
  print_err("{}", wrapped(own_text(text), 80));
}

std::string describe(const std::string& name, const EvalResult& report, const Config& config) {
  if (report.references)
    return fmt::format("{:<11} loss {:.6f}   {:<25}   tokens {:6.2f} % of {}", name, report.loss,
                       describe_text(report.loss, config), 100 * report.accuracy, grouped(report.labels));
  const double whole = report.exact_match.value_or(report.sequence_accuracy);
  return fmt::format("{:<11} loss {:.6f}   tokens {:6.2f} %   {} {:6.2f} % of {}", name, report.loss,
                     100 * report.accuracy, report.exact_match ? "exact match" : "sequences", 100 * whole,
                     report.sequences);
}

}  // namespace thimble::cli
