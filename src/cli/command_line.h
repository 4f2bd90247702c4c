// The table of commands and options that the command line is read with.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "thimble/core/file.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thimble::cli {

// An option of a command, or an argument without a name; the functions restrict and describe its values.
class Option {
 public:
  explicit Option(CLI::Option* parsed) : parsed_(parsed) {}

  Option& value_name(const std::string& name);
  Option& shows_default();
  Option& required();
  Option& pair();  // takes two values
  Option& between(std::int64_t least, std::int64_t most);
  Option& one_of(const std::vector<std::string>& names);
  Option& excludes(const Option& other);
  Option& needs(const Option& other);

  // For names of outputs: refuses what cannot be written while the command line is read, before any work and
  // before any other output is there. `check` throws FileError; "-" is standard output.
  Option& writable(void (*check)(const std::filesystem::path&) = require_writable);

 private:
  CLI::Option* parsed_;
};

class Command {
 public:
  // The program itself.
  Command(const std::string& summary, const std::string& version);
  explicit Command(CLI::App* parsed);
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
  void ending(const std::string& text);
  // What the command does; returns the exit status.
  void action(std::function<int()> run) { run_ = std::move(run); }

  // Of the program: reads the command line and runs what it asks for. Throws ConfigError for a bad one.
  int run(int argc, char** argv);

 private:
  const Command& chosen() const;

  std::unique_ptr<CLI::App> program_;  // null in the commands below
  CLI::App* parsed_;
  std::list<Command> commands_;
  std::deque<Option> options_;
  std::function<int()> run_;
};

}  // namespace thimble::cli
