#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace thimble::cli {

namespace {

// 'text' for a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// The last part of "thimble config show" and the ones before it: "config_show", "" for the program.
std::string function_name(const Command& command) {
  std::string path = command.path();
  const std::size_t space = path.find(' ');
  path = space == std::string::npos ? "" : path.substr(space + 1);
  for (char& c : path)
    if (c == ' ') c = '_';
  return path;
}

template <class Visit>
void for_each_command(const Command& command, const Visit& visit) {
  visit(command);
  for (const Command& below : command.commands()) for_each_command(below, visit);
}

// What to offer: the choices there are, or a kind of name.
std::string bash_offer(const Option::Info& option) {
  if (!option.choices.empty())
    return fmt::format("_thimble_words {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  constexpr const char* kOffers[] = {
      ":", "_thimble_files", "_thimble_directories", "_thimble_configs", "_thimble_runs", "_thimble_keys"};
  return kOffers[static_cast<std::size_t>(option.kind)];
}

// A branch for each option with a value, one for the options themselves, and one for arguments by number.
std::string bash_case(const Command& command) {
  std::string names, values, valued, arguments;
  int number = 0;
  for (const Command& below : command.commands()) names += below.name() + " ";
  std::string options = names;
  for (const Option& option : command.options()) {
    const Option::Info& info = option.info();
    if (info.is_argument()) {
      arguments +=
          fmt::format("        {}) {} ;;\n", info.repeats ? "*" : std::to_string(number++), bash_offer(info));
      continue;
    }
    options += info.name + " ";
    if (info.flag) continue;
    valued += info.name + "|";
    values += fmt::format("        {}) {}; return ;;\n", info.name, bash_offer(info));
  }
  if (!names.empty()) arguments = fmt::format("        0) _thimble_words {} ;;\n", shell_quoted(names));
  if (!valued.empty()) valued.pop_back();
  return fmt::format(
      "    {})\n"
      "      case $previous in\n{}      esac\n"
      "      if [[ $current == -* ]]; then _thimble_words {}; return; fi\n"
      "      case $(_thimble_arguments $depth {}) in\n{}      esac ;;\n",
      shell_quoted(function_name(command)), values, shell_quoted(options), shell_quoted(valued), arguments);
}

constexpr const char* kBash = R"sh(# Completion of thimble for bash; made by: thimble completion bash
_thimble_words() { COMPREPLY+=($(compgen -W "$1" -- "$current")); }
_thimble_files() { compopt -o filenames; COMPREPLY+=($(compgen -f -- "$current")); }
_thimble_directories() { compopt -o filenames; COMPREPLY+=($(compgen -d -- "$current")); }
_thimble_configs() {
  _thimble_words "$("${COMP_WORDS[0]}" completion --names configs 2>/dev/null)"
  compopt -o filenames
  COMPREPLY+=($(compgen -d -- "$current") $(compgen -f -X '!*.yaml' -- "$current"))
}
_thimble_runs() {
  local directory
  compopt -o filenames
  for directory in $(compgen -d -- "$current") $(compgen -d -- "${current:-runs/}"); do
    [[ -e $directory/metrics.jsonl ]] && COMPREPLY+=("$directory")
  done
  ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -d -- "$current"))
}
_thimble_keys() {
  compopt -o nospace
  _thimble_words "$("${COMP_WORDS[0]}" completion --names keys 2>/dev/null)"
}
# How many arguments without dashes stand before the cursor. $1: words of the command; $2: options with a value.
_thimble_arguments() {
  local i count=0
  for ((i = $1 + 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == = || ${COMP_WORDS[i - 1]} == = ||
      "|$2|" == *"|${COMP_WORDS[i - 1]}|"* ]] || ((++count))
  done
  echo $count
}
_thimble() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} path= depth=0 i
  local IFS=$' \t\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case $path/${COMP_WORDS[i]} in
)sh";

std::string zsh_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) out += (c == '[' || c == ']' || c == ':' ? "\\" : "") + std::string(1, c);
  return out;
}

std::string zsh_offer(const Option::Info& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  constexpr const char* kOffers[] = {
      " ", "_files", "_files -/", "_thimble_configs", "_thimble_runs", "_thimble_keys"};
  return kOffers[static_cast<std::size_t>(option.kind)];
}

std::string zsh_function(const Command& command) {
  const std::string name = function_name(command);
  std::string out = fmt::format("_thimble{}{}() {{\n", name.empty() ? "" : "_", name);
  out += command.commands().empty() ? "  _arguments"
                                    : "  local curcontext=$curcontext line state\n  _arguments -C";
  for (const Option& option : command.options()) {
    const Option::Info& info = option.info();
    const std::string value = fmt::format("{}:{}", zsh_quoted(info.value()), zsh_offer(info));
    const std::string spec = info.is_argument() ? fmt::format("{}:{}", info.repeats ? "*" : "", value)
                                                : fmt::format("{}[{}]{}", info.name, zsh_quoted(info.help),
                                                              info.flag ? "" : ":" + value);
    out += " \\\n    " + shell_quoted(spec);
  }
  if (!command.commands().empty()) {
    out +=
        " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n    command)\n      local -a commands=(\n";
    for (const Command& below : command.commands())
      out += fmt::format("        {}\n", shell_quoted(below.name() + ":" + below.summary()));
    const std::string prefix = name.empty() ? "_thimble" : "_thimble_" + name;
    out +=
        fmt::format("      )\n      _describe command commands ;;\n    rest) {}_$line[1] ;;\n  esac", prefix);
  }
  return out + "\n}\n";
}

constexpr const char* kZsh = R"sh(#compdef thimble
# Completion of thimble for zsh; made by: thimble completion zsh
_thimble_configs() {
  local -a names=(${(f)"$(thimble completion --names configs 2>/dev/null)"})
  compadd -a names
  _files -g '*.yaml'
}
_thimble_runs() { _files -/ }
_thimble_keys() {
  local -a names=(${(f)"$(thimble completion --names keys 2>/dev/null)"})
  compadd -S '' -a names
}
)sh";

std::string fish_offer(const Option::Info& option) {
  if (!option.choices.empty()) return shell_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
  constexpr const char* kOffers[] = {"''",
                                     "'(__fish_complete_path)'",
                                     "'(__fish_complete_directories)'",
                                     "'(thimble completion --names configs; __fish_complete_suffix .yaml)'",
                                     "'(__fish_complete_directories)'",
                                     "'(thimble completion --names keys)'"};
  return kOffers[static_cast<std::size_t>(option.kind)];
}

// The condition that the command line so far names this command.
std::string fish_condition(const Command& command) {
  std::string path = command.path(), out;
  for (std::size_t space = 0; (space = path.find(' ')) != std::string::npos;) {
    path.erase(0, space + 1);
    out += fmt::format("{}__fish_seen_subcommand_from {}", out.empty() ? "" : "; and ",
                       path.substr(0, path.find(' ')));
  }
  return out;
}

std::string fish_lines(const Command& command) {
  const std::string here = fish_condition(command);
  std::string names, out;
  for (const Command& below : command.commands()) names += " " + below.name();
  const std::string none = names.empty() ? "" : "not __fish_seen_subcommand_from" + names;
  const std::string where = here.empty() || none.empty() ? here + none : here + "; and " + none;
  const std::string start = fmt::format("complete -c thimble -n {}", shell_quoted(where));
  for (const Command& below : command.commands())
    out += fmt::format("{} -a {} -d {}\n", start, below.name(), shell_quoted(below.summary()));
  for (const Option& option : command.options()) {
    const Option::Info& info = option.info();
    if (info.is_argument())
      out += fmt::format("{} -a {}\n", start, fish_offer(info));
    else
      out += fmt::format("{} -l {}{} -d {}\n", start, info.name.substr(2),
                         info.flag ? "" : " -r -a " + fish_offer(info), shell_quoted(info.help));
  }
  return out;
}

}  // namespace

std::string bash_completion(const Command& program) {
  std::string paths, cases;
  for_each_command(program, [&](const Command& command) {
    cases += bash_case(command);
    for (const Command& below : command.commands())
      paths += fmt::format("      {}/{}) path={} depth=$i ;;\n", function_name(command), below.name(),
                           function_name(below));
  });
  return fmt::format("{}{}    esac\n  done\n  case $path in\n{}  esac\n}}\ncomplete -F _thimble thimble\n",
                     kBash, paths, cases);
}

std::string zsh_completion(const Command& program) {
  std::string out = kZsh;
  for_each_command(program, [&](const Command& command) { out += zsh_function(command); });
  return out +
         "if [[ $funcstack[1] == _thimble ]]; then _thimble \"$@\"; else compdef _thimble thimble; fi\n";
}

std::string fish_completion(const Command& program) {
  std::string out =
      "# Completion of thimble for fish; made by: thimble completion fish\ncomplete -c thimble -f\n";
  for_each_command(program, [&](const Command& command) { out += fish_lines(command); });
  return out;
}

}  // namespace thimble::cli
