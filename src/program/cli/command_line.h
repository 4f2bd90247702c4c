// The commands and options. CLI11 holds them and parses the command line; --help, the man page and shell completion
// ask it.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "thimble/train/file.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace thimble::cli {

// The kinds of values, for shell completion and for the rules of outputs. A new_run and a new_sweep are
// directories that the command writes.
enum class Value { text, file, directory, config, run, key, new_run, new_sweep };

// An option of a command, or a positional argument, with what CLI11 has no place for.
class Option {
 public:
  explicit Option(CLI::Option* parsed) : parsed_(parsed) {}
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

  Option& value_name(const std::string& name, Value kind = Value::text);
  Option& shows_default();
  Option& required();
  Option& between(std::int64_t min, std::int64_t max,
                  bool with_min = false);  // of value N, or X if it is real
  Option& one_of(const std::vector<std::string>& names);
  Option& suggests(const std::vector<std::string>& names);
  Option& excludes(const Option& other);
  Option& replaced_by(const Option& other);  // of an argument that is not there when the other is given
  Option& needs(const Option& other);

  // Marks the value FILE as an output path, which is checked while the command line is parsed, before any work. "-" is
  // standard output.
  Option& writable();

  const CLI::Option& parsed() const { return *parsed_; }
  Value kind() const { return kind_; }
  const std::vector<std::string>& choices() const { return choices_; }
  const Option* substitute() const { return substitute_; }

 private:
  friend class Command;
  void require_number(const std::string& text) const;  // throws ConfigError

  CLI::Option* parsed_;
  Value kind_ = Value::text;
  std::vector<std::string> choices_;
  const Option* substitute_ = nullptr;
  bool is_output_ = false, is_real_ = false, with_min_ = false;
  std::int64_t min_ = std::numeric_limits<std::int64_t>::min(),
               max_ = std::numeric_limits<std::int64_t>::max();
  std::string* text_ = nullptr;  // the variable, if it is a string
};

// The program, or a command of it.
class Command {
 public:
  // Makes the program.
  Command(const std::string& name, const std::string& summary, const std::string& version);
  // Makes a command below `above`; call add_command instead.
  Command(Command& above, const std::string& name, const std::string& summary);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Adds a command below this one, which then requires one of its commands.
  Command& add_command(const std::string& name, const std::string& summary);

  // Adds an option, or with a name in capitals a positional argument. T: std::string, int, std::int64_t, a
  // vector or std::optional of one of them, or double, of which between() gives bounds, the lower one excluded
  // unless with_min is true, so that the command can say what to do instead.
  // The value of the variable is the default.
  template <class T>
  Option& add_option(const std::string& name, T& variable, const std::string& help);
  Option& add_flag(const std::string& name, bool& variable, const std::string& help);

  // Sets the heading, in the help text, of options that are added later.
  void group(const std::string& heading);

  // Makes a former option, with a value or without, an error that names what takes its place; `now` may have {} for the value.
  void add_former(const std::string& name, const std::string& now);

  // Gives the words after -- to the variable.
  void add_rest(std::vector<std::string>& variable) { rest_ = &variable; }

  // Sets the end of the help text, for this command and those that are added to it later.
  void ending(const std::string& text);
  // Adds a command line to the help text, before its end.
  void example(const std::string& line);
  // Sets the function that runs the command; it returns the exit status.
  void action(std::function<int()> run) { run_ = std::move(run); }

  // Parses the command line of the program and runs the command; throws ConfigError for an invalid one.
  int run(int argc, char** argv);

  const CLI::App& parsed() const { return *parsed_; }
  const std::deque<Option>& options() const { return options_; }
  const std::list<Command>& commands() const { return commands_; }
  const Command* find(const std::string& name) const;
  std::string path() const;  // "thimble config show"

 private:
  const Command& chosen() const;
  std::string explain(const CLI::ParseError&) const;
  void check_outputs() const;  // throws ConfigError as declare_outputs() does; makes standard output "-"

  std::unique_ptr<CLI::App> program_;  // null except in the program
  CLI::App* parsed_;
  std::list<Command> commands_;
  std::deque<Option> options_;
  std::vector<std::string>* rest_ = nullptr;
  std::function<int()> run_;
};

}  // namespace thimble::cli
