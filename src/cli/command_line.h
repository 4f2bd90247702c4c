// The one table of commands and options: the command line is read with it, and --help, the manual page and
// the completions of shells are made from it.
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

#include "thimble/core/file.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace thimble::cli {

// What a shell offers for a value.
enum class Value { text, file, directory, config, run, key };

// An option of a command, or an argument, which has no dashes; the functions restrict and describe its
// values.
class Option {
 public:
  struct Info {
    std::string name = {}, help = {}, value_name = {}, default_text = {};
    std::vector<std::string> choices = {};
    Value kind = Value::text;
    bool required = false, repeats = false, flag = false;
    std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                 most = std::numeric_limits<std::int64_t>::max();

    bool is_argument() const { return name[0] != '-'; }
    std::string value() const { return value_name.empty() ? name : value_name; }
  };

  Option(CLI::Option* parsed, Info info) : parsed_(parsed), info_(std::move(info)) {}
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

  Option& value_name(const std::string& name, Value kind = Value::text);
  Option& shows_default();
  Option& required();
  Option& pair();  // takes two values
  Option& between(std::int64_t least, std::int64_t most);
  Option& one_of(const std::vector<std::string>& names);
  Option& suggests(const std::vector<std::string>& names);
  Option& excludes(const Option& other);
  Option& needs(const Option& other);

  // For names of outputs: refuses what cannot be written while the command line is read, before any work and
  // before any other output is there. `check` throws FileError; "-" is standard output.
  Option& writable(void (*check)(const std::filesystem::path&) = require_writable);

  const Info& info() const { return info_; }

 private:
  friend class Command;
  void require_number(const std::string& text) const;  // throws ConfigError

  CLI::Option* parsed_;
  Info info_;
  std::string* text_ = nullptr;  // the variable, if it is one text
};

class Command {
 public:
  // The program itself.
  Command(const std::string& name, const std::string& summary, const std::string& version);
  // A command below `above`, see add_command.
  Command(Command& above, const std::string& name, const std::string& summary);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // A command that has commands does nothing itself: one of them must be given.
  Command& add_command(const std::string& name, const std::string& summary);

  // T: std::string, int, std::int64_t, a vector of one of them, or std::optional of one of them. `name`: with
  // dashes, or in capitals for an argument. The value that the variable has is the default.
  template <class T>
  Option& add_option(const std::string& name, T& variable, const std::string& help);
  Option& add_flag(const std::string& name, bool& variable, const std::string& help);

  // What --help says at the end, here and for commands below without an ending of their own.
  void ending(const std::string& text) { ending_ = text; }
  // What the command does; returns the exit status.
  void action(std::function<int()> run) { run_ = std::move(run); }

  // Of the program: reads the command line and runs what it asks for. Throws ConfigError for a bad one.
  int run(int argc, char** argv);

  const std::string& name() const { return name_; }
  std::string path() const;  // "thimble config show"
  const std::string& summary() const { return summary_; }
  const std::string& ending() const;
  const std::deque<Option>& options() const { return options_; }
  const std::list<Command>& commands() const { return commands_; }
  const Command* find(const std::string& name) const;

 private:
  const Command& chosen() const;
  std::string explain(const CLI::ParseError&) const;

  std::unique_ptr<CLI::App> program_;  // null in the commands below
  CLI::App* parsed_;
  const Command* above_ = nullptr;
  std::string name_, summary_, ending_;
  std::list<Command> commands_;
  std::deque<Option> options_;
  std::function<int()> run_;
};

}  // namespace thimble::cli
