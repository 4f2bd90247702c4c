#include "program/cli/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "program/cli/completion.h"
#include "program/cli/find_config.h"
#include "program/cli/help.h"
#include "program/cli/outputs.h"
#include "program/cli/print.h"
#include "thimble/engine/error.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble::cli {

Option& Option::value_name(const std::string& name, Value kind) {
  parsed_->type_name(name);
  kind_ = kind;
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

Option& Option::between(std::int64_t min, std::int64_t max, bool with_min) {
  with_min_ = with_min;
  min_ = min;
  max_ = max;
  return value_name(is_real_ ? "X" : "N");
}

void Option::require_number(const std::string& text) const {
  if (is_real_) {
    const auto value = parse_number<double>(text);
    if (with_min_ && value && *value == static_cast<double>(min_)) return;
    require<ConfigError>(value && *value > static_cast<double>(min_) && *value <= static_cast<double>(max_),
                         "{} {}: must be a number above {}, at most {}", parsed_->get_name(), text, min_,
                         max_);
    return;
  }
  const auto value = parse_number<std::int64_t>(text);
  const bool limited = max_ < std::numeric_limits<std::int64_t>::max();
  const bool above = min_ > std::numeric_limits<std::int64_t>::min();
  require<ConfigError>(value && *value >= min_ && *value <= max_, "{} {}: must be an integer{}{}",
                       parsed_->get_name(), text,
                       limited ? fmt::format(" from {} to {}", min_, max_)
                       : above ? fmt::format(" from {}", min_)
                               : "",
                       did_you_mean(text, min_, max_));
}

Option& Option::one_of(const std::vector<std::string>& names) {
  const auto test = [this](const std::string& text) -> std::string {
    require<ConfigError>(std::ranges::find(choices_, text) != choices_.end(), "{} {}: must be one of {}{}",
                         parsed_->get_name(), text, fmt::join(choices_, ", "), did_you_mean(text, choices_));
    return "";
  };
  parsed_->check(CLI::Validator(test, ""));
  return suggests(names);
}

Option& Option::suggests(const std::vector<std::string>& names) {
  choices_ = names;
  return *this;
}

Option& Option::excludes(const Option& other) {
  parsed_->excludes(other.parsed_);
  return *this;
}

Option& Option::replaced_by(const Option& other) {
  substitute_ = &other;
  return *this;
}

Option& Option::needs(const Option& other) {
  parsed_->needs(other.parsed_);
  return *this;
}

Option& Option::writable() {
  const auto test = [](const std::string& path) -> std::string {
    try {
      if (path != "-") require_writable(path);
    } catch (const FileError& e) {
      throw FileError(
          fmt::format("{}; choose a path in an existing directory that you can write to", e.what()));
    }
    return "";
  };
  parsed_->check(CLI::Validator(test, ""));
  is_output_ = true;
  return value_name("FILE", Value::file);
}

Command::Command(const std::string& name, const std::string& summary, const std::string& version)
    : program_(std::make_unique<CLI::App>(summary, name)), parsed_(program_.get()) {
  options_.emplace_back(parsed_->set_help_flag("-h,--help", "Print this help and exit"));
  options_.emplace_back(parsed_->set_version_flag("--version", version, "Print the version and exit"));
}

Command::Command(Command& above, const std::string& name, const std::string& summary)
    : parsed_(above.parsed_->add_subcommand(name, summary)) {
  options_.emplace_back(parsed_->get_help_ptr());
}

Command::~Command() = default;

Command& Command::add_command(const std::string& name, const std::string& summary) {
  parsed_->require_subcommand(1);
  return commands_.emplace_back(*this, name, summary);
}

template <class T>
Option& Command::add_option(const std::string& name, T& variable, const std::string& help) {
  constexpr bool kText = std::is_same_v<T, std::string> || std::is_same_v<T, std::optional<std::string>> ||
                         std::is_same_v<T, std::vector<std::string>>;
  constexpr bool kRepeats =
      std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, std::vector<std::int64_t>>;
  Option& option = options_.emplace_back(parsed_->add_option(name, variable, help));
  const bool is_argument = option.parsed_->get_positional();
  option.is_real_ = std::is_same_v<T, double>;
  if constexpr (std::is_same_v<T, std::string>) option.text_ = &variable;
  if (is_argument) option.parsed_->type_name("");
  // An option takes its values from one word, "a,b", so that the words after it stay arguments.
  if (kRepeats && !is_argument) option.parsed_->delimiter(',')->allow_extra_args(false);
  const auto test = [&option](const std::string& text) -> std::string {
    option.require_number(text);
    return "";
  };
  if (!kText) option.parsed_->check(CLI::Validator(test, ""));
  return option;
}

void Command::add_former(const std::string& name, const std::string& now) {
  const auto refuse = [name, now](const std::string& value) {
    throw ConfigError(fmt::format("{}{}{}: is now {}", name, value.empty() ? "" : " ", printable(value),
                                  fmt::format(fmt::runtime(now), printable(value))));
  };
  parsed_->add_option_function<std::string>(name, refuse)->expected(0, 1)->group("");
}

template Option& Command::add_option(const std::string&, std::string&, const std::string&);
template Option& Command::add_option(const std::string&, int&, const std::string&);
template Option& Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option& Command::add_option(const std::string&, double&, const std::string&);
template Option& Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option& Command::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Option& Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option& Command::add_option(const std::string&, std::optional<std::int64_t>&, const std::string&);

Option& Command::add_flag(const std::string& name, bool& variable, const std::string& help) {
  return options_.emplace_back(parsed_->add_flag(name, variable, help));
}

void Command::group(const std::string& heading) { parsed_->option_defaults()->group(heading); }

void Command::ending(const std::string& text) { parsed_->footer(text); }

void Command::example(const std::string& line) {
  ending("Example: " + line + "\n\n" + parsed_->get_footer());
}

std::string Command::path() const {
  std::string out = parsed_->get_name();
  for (const CLI::App* above = parsed_->get_parent(); above != nullptr; above = above->get_parent())
    out = above->get_name() + " " + out;
  return out;
}

const Command* Command::find(const std::string& name) const {
  for (const Command& command : commands_)
    if (command.parsed_->get_name() == name) return &command;
  return nullptr;
}

const Command& Command::chosen() const {
  for (const Command& command : commands_)
    if (command.parsed_->parsed()) return command.chosen();
  return *this;
}

std::string Command::explain(const CLI::ParseError& e) const {
  const std::vector<std::string> unknown = parsed_->remaining();
  const bool is_option = !unknown.empty() && unknown.front().starts_with("-");
  std::vector<std::string> names;
  const bool has_keys = std::ranges::find(options_, Value::key, &Option::kind_) != options_.end();
  if (is_option && has_keys && unknown.front().find('.') != std::string::npos) {
    const std::string key = unknown.front().substr(unknown.front().find_first_not_of('-'));
    return fmt::format("unknown option {}; a config key has no dashes: {}{}", unknown.front(), key,
                       key.find('=') == std::string::npos ? "=VALUE" : "");
  }
  if (is_option) {
    for (const Option& option : options_)
      if (!option.parsed_->get_positional()) names.push_back(option.parsed_->get_name());
    return fmt::format("unknown option {}{}", unknown.front(), did_you_mean(unknown.front(), names));
  }
  if (!commands_.empty()) {
    for (const Command& command : commands_) names.push_back(command.parsed_->get_name());
    if (unknown.empty()) return fmt::format("missing command: one of {}", fmt::join(names, ", "));
    return fmt::format("unknown command {}{}", unknown.front(), did_you_mean(unknown.front(), names));
  }
  if (!unknown.empty()) return fmt::format("unexpected argument {}", unknown.front());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) != nullptr)
    for (const Option& option : options_)
      if (const std::string name = option.parsed_->get_name();
          std::string_view(e.what()).starts_with(name + ":") && option.parsed_->get_items_expected_max() > 0)
        return fmt::format("{} requires a value: {} {}", name, name, option.parsed_->get_type_name());
  return e.what();
}

void Command::check_outputs() const {
  std::vector<NamedPath> outputs, directories;
  std::vector<std::string> inputs;
  for (const Option& option : options_) {
    if (option.text_ == nullptr) continue;
    const Value kind = option.kind_;
    if (option.is_output_ && is_standard_output(*option.text_)) *option.text_ = "-";
    if (option.is_output_)
      outputs.push_back({option.parsed_->get_name(), *option.text_, kind});
    else if (kind == Value::directory || kind == Value::run || kind == Value::new_run ||
             kind == Value::new_sweep)
      directories.push_back({option.parsed_->get_name(), *option.text_, kind});
    else if (kind == Value::config || kind == Value::file)
      inputs.push_back(*option.text_);
  }
  declare_outputs(outputs, directories);
  require_no_outputs(inputs);
}

int Command::run(int argc, char** argv) {
  if (argc > 1 &&
      argv[1] == std::string_view("complete")) {  // hidden: scripts of completion_script() call it
    write_picture(completions(*this, {argv + 2, argv + argc}));
    return 0;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    require<ConfigError>(utf8_size(argument) == argument.size(), "argument {} ({}): not UTF-8 text", i,
                         printable(argument));
  }
  char** end = argv + argc;
  if (const Command* command = argc > 1 ? find(argv[1]) : nullptr; command != nullptr && command->rest_) {
    end = std::find(argv, argv + argc, std::string_view("--"));
    if (end != argv + argc) command->rest_->assign(end + 1, argv + argc);
  }
  const auto print_help = [this] {
    write_out(help(chosen(), std::min<std::size_t>(80, line_width(1))));
    return 0;
  };
  if (argc == 1) return print_help();
  try {
    parsed_->parse(static_cast<int>(end - argv), argv);
  } catch (const CLI::CallForHelp&) {
    return print_help();
  } catch (const CLI::CallForVersion& e) {
    print_out("{}\n", e.what());
    return 0;
  } catch (const CLI::ParseError& e) {
    const Command& command = chosen();
    throw ConfigError(fmt::format("{}; see {} --help", command.explain(e), command.path()));
  }
  const Command& command = chosen();
  for (const Option& option : command.options_)
    if (option.kind_ == Value::config && !option.text_->empty()) {
      const bool is_key = option.parsed_->get_positional() && option.text_->find('=') != std::string::npos;
      std::error_code ignored;
      require<ConfigError>(!is_key || std::filesystem::exists(*option.text_, ignored),
                           "{}: is a key, and a config comes first: {} names {}", *option.text_,
                           command.path(), shell_command({*option.text_}));
      *option.text_ = find_config(*option.text_);
      if (option.parsed_->get_name() != "SWEEP") require_config(*option.text_);
    }
  command.check_outputs();
  return command.run_();
}

}  // namespace thimble::cli
