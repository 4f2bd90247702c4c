// What the subcommands share. Each is one file with one add_...(program) function, which declares its options
// and sets what runs when it is chosen.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/print.h"
#include "thimble/config/config.h"
#include "thimble/core/json.h"
#include "thimble/train/run.h"

namespace thimble::cli {

enum Status { kDone = 0, kCheckFailed = 1, kBadInput = 2, kNotFinite = 3, kInterrupted = 130 };

// Options that every subcommand takes.
struct Output {
  std::string json;  // file for the machine-readable result, "-" for standard output
  bool quiet = false;

  void add_to(Command& command);
  bool prints_text() const { return !quiet && json != "-"; }  // whether people read standard output
  void write(const Json& result) const;
};

// A run directory, or a config and weights made elsewhere.
struct Source {
  std::string run, checkpoint, config, weights;
  std::vector<std::string> overrides;

  void add_to(Command& command);
  // Throws ConfigError when the tokens of --input were given as several arguments.
  void require_one_text(const std::string& input) const;
  ModelSource open() const;
};

// CONFIG and key=value arguments.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;
  int threads = -1;

  void add_to(Command& command, bool required = true);
  Config load() const;
};

bool is_terminal(int descriptor);

// Colors that standard output shows: none where it is no terminal or NO_COLOR is set; fixed: 256 of them.
enum class Colors { none, fixed, all };
Colors colors();

// From now on SIGINT and SIGTERM only make stop_requested() true; a second one ends the program at once.
void catch_signals();
bool stop_requested();

// A line such as "test        loss 0.0001   tokens 100.00 %   sequences 100.00 %".
std::string describe(const std::string& name, const EvalResult& report);

// A line, ended, with the lowest possible loss and chance, below those of describe; "" when neither is known.
std::string describe_reference(const EvalResult& report);

// Says on standard error that a split's accuracy is no better than chance, if it is not.
void warn_of_chance(const std::string& name, const EvalResult& report);

// Says on standard error that a split's loss is lower than can be, if it is; returns whether.
bool warn_of_leak(const std::string& name, const EvalResult& report);

void add_train(Command& program);
void add_sweep(Command& program);
void add_reproduce(Command& program);
void add_eval(Command& program);
void add_inspect(Command& program);
void add_generate(Command& program);
void add_gradcheck(Command& program);
void add_bench(Command& program);
void add_tasks(Command& program);
void add_config(Command& program);
void add_completion(Command& program);
void add_manual(Command& program);

}  // namespace thimble::cli
