// Shared by the subcommands. Each subcommand is a file with a function add_...(program), which declares its
// options and its action.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "program/cli/command_line.h"
#include "program/cli/outputs.h"
#include "program/cli/print.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "thimble/train/ranks.h"
#include "thimble/train/run.h"

namespace thimble::cli {

enum Status { kDone = 0, kCheckFailed = 1, kBadInput = 2, kNotFinite = 3, kInterrupted = 130 };

// The options --json and --quiet.
struct Output {
  std::string json;  // file of the result, "-" for standard output
  bool quiet = false;

  void add_to(Command& command);
  bool prints_text() const { return !quiet && !standard_output_is_taken(); }
  void write(const Json& result) const;
};

// The arguments that name a model: a run directory, or weights and their config.
struct ModelArguments {
  std::string run, checkpoint, config, weights;
  std::optional<std::string> subject;  // the argument after RUN, of commands that have one
  std::vector<std::string> overrides;
  int threads = -1;  // -1: those of the config

  void add_to(Command& command, const std::string& subject_name = "", const std::string& subject_help = "");
  // Returns the argument after RUN, or the first with --weights. Throws ConfigError if it is missing.
  std::string take_subject(const std::string& name);
  // Throws ConfigError when the tokens of the input that comes after `before` are several arguments.
  void require_one_text(const std::string& input, const std::string& before) const;
  ModelSource open() const;
};

// The arguments CONFIG and key=value.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;
  int threads = -1;

  void add_to(Command& command, bool required = true);
  OpenConfig load() const;
  OpenConfig load(const RunDirectory& run) const;  // the config of a run, in place of a file

 private:
  OpenConfig finished(OpenConfig config) const;
};

// Returns the ranks of the cluster. Only rank 0 prints and writes results from then on. Throws ConfigError on all ranks when they
// run different commands, or with another --out or --json; --threads and --quiet may differ.
Ranks& start_ranks(const std::string& command, const Output& output, const std::string& directory = "");

bool is_terminal(int descriptor);

// The colors of standard output: none where it is not a terminal or NO_COLOR is set, all: 24-bit colors.
enum class Colors { none, all };
Colors colors();

// Makes stop_signals() set stop_requested(); the same signal again ends the program at once if it insists().
void catch_signals();
bool stop_requested();

// Returns a line such as "test        loss 0.0001   tokens 100.00 %   sequences 100.00 %".
std::string describe(const std::string& name, const EvalResult& report, const Config& config);

// Returns a line, with its line break, with the lowest possible loss and the chance level, aligned with those
// of describe; "" when neither is known.
std::string describe_reference(const EvalResult& report, const Config& config);

// Warns on standard error of data files that have changed since training, see ModelSource::changes.
void warn_of_changes(const std::vector<FileChange>& changes);
void show_remarks(const std::vector<std::string>& remarks);  // on standard error

// Warns on standard error if the accuracy on a split is no better than chance.
void warn_of_chance(const std::string& name, const EvalResult& report);

// Warns on standard error if the loss on a split is below the lowest possible; returns whether it is.
bool warn_of_leak(const std::string& name, const EvalResult& report);

void add_train(Command& program);
void add_sweep(Command& program);
void add_reproduce(Command& program);
void add_eval(Command& program);
void add_inspect(Command& program);  // and trace, patch, ablate
void add_curves(Command& program);
void add_compare(Command& program);
void add_generate(Command& program);
void add_serve(Command& program);
void add_gradcheck(Command& program);
void add_bench(Command& program);
void add_tasks(Command& program);
void add_config(Command& program);
void add_help(Command& program);
void add_completion(Command& program);
void add_manual(Command& program);

}  // namespace thimble::cli
