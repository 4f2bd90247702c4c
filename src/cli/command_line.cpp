#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "thimble/core/error.h"
#include "thimble/core/text.h"

namespace thimble::cli {

Option& Option::value_name(const std::string& name) {
  parsed_->type_name(name);
  return *this;
}

Option& Option::shows_default() {
  parsed_->capture_default_str();
  return *this;
}

Option& Option::required() {
  parsed_->required();
  return *this;
}

Option& Option::pair() {
  parsed_->expected(2);
  return *this;
}

Option& Option::between(std::int64_t least, std::int64_t most) {
  parsed_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& names) {
  parsed_->check(CLI::IsMember(names));
  return *this;
}

Option& Option::excludes(const Option& other) {
  parsed_->excludes(other.parsed_);
  return *this;
}

Option& Option::needs(const Option& other) {
  parsed_->needs(other.parsed_);
  return *this;
}

Option& Option::writable(void (*check)(const std::filesystem::path&)) {
  const auto test = [check](const std::string& path) -> std::string {
    try {
      if (path != "-") check(path);
    } catch (const FileError& e) {
      throw FileError(
          fmt::format("{}; choose a path in a folder that is there and may be written to", e.what()));
    }
    return "";
  };
  parsed_->check(CLI::Validator(test, ""));
  return *this;
}

Command::Command(const std::string& summary, const std::string& version)
    : program_(std::make_unique<CLI::App>(summary)), parsed_(program_.get()) {
  parsed_->set_version_flag("--version", version);
  parsed_->get_formatter()->column_width(22);
}

Command::Command(CLI::App* parsed) : parsed_(parsed) {}

Command::~Command() = default;

Command& Command::add_command(const std::string& name, const std::string& summary) {
  parsed_->require_subcommand(1);
  return commands_.emplace_back(parsed_->add_subcommand(name, summary));
}

template <class T>
Option& Command::add_option(const std::string& name, T& variable, const std::string& help) {
  return options_.emplace_back(parsed_->add_option(name, variable, help));
}

template Option& Command::add_option(const std::string&, std::string&, const std::string&);
template Option& Command::add_option(const std::string&, int&, const std::string&);
template Option& Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option& Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option& Command::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Option& Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option& Command::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&);

Option& Command::add_flag(const std::string& name, bool& variable, const std::string& help) {
  return options_.emplace_back(parsed_->add_flag(name, variable, help));
}

void Command::ending(const std::string& text) { parsed_->footer(text); }

const Command& Command::chosen() const {
  for (const Command& command : commands_)
    if (command.parsed_->parsed()) return command.chosen();
  return *this;
}

int Command::run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    require<ConfigError>(utf8_size(argument) == argument.size(), "argument {}, {}: not UTF-8 text", i,
                         printable(argument));
  }
  try {
    parsed_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return parsed_->exit(e);
    const auto unknown = parsed_->remaining();
    require<ConfigError>(!parsed_->get_subcommands().empty() || unknown.empty(),
                         "there is no command {}; thimble --help lists them",
                         unknown.empty() ? "" : unknown.front());
    throw ConfigError(fmt::format("{}; --help says what there is", e.what()));
  }
  return chosen().run_();
}

}  // namespace thimble::cli
