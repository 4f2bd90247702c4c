#include "program/cli/completion.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "program/cli/find_config.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "thimble/train/run_directory.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBash = R"sh(# bash completion of thimble, printed by: thimble completion bash
_thimble() {
  local kind word words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=(=)
  COMPREPLY=()
  {
    read -r kind
    while IFS=$'\t' read -r word _; do [[ $word != "$2"* ]] || COMPREPLY+=("$word"); done
  } < <("$(type -P "$1" || echo thimble)" complete "${words[@]}" "$2" 2>/dev/null)
  local add=(mapfile -t -O ${#COMPREPLY[@]} COMPREPLY)
  case $kind in
    files) "${add[@]}" < <(compgen -f -- "$2") ;;
    directories) "${add[@]}" < <(compgen -d -- "$2") ;;
    configs) "${add[@]}" < <(compgen -d -- "$2"; compgen -f -X '!*.yaml' -- "$2") ;;
    runs) ((${#COMPREPLY[@]})) || "${add[@]}" < <(compgen -d -- "$2") ;;
    keys) compopt -o nospace; return ;;
    *) return ;;
  esac
  compopt -o filenames
}
complete -F _thimble thimble
)sh";

constexpr const char* kZsh = R"sh(#compdef thimble
# zsh completion of thimble, printed by: thimble completion zsh
_thimble() {
  local program=$(whence -p -- ${~words[1]} || print thimble)
  local -a lines=("${(@f)$($program complete "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  local kind=$lines[1]
  lines=(${${lines[2,-1]//:/\\:}/$'\t'/:})
  case $kind in
    files|directories|configs) compset -P '--*=' ;;
    runs) _describe run lines -f || _files -/; return ;;
    keys) _describe key lines -S ''; return ;;
  esac
  (($#lines)) && _describe "${kind:-word}" lines
  case $kind in
    files) _files ;;
    directories) _files -/ ;;
    configs) _files -g '*.yaml' ;;
    ?*) _message $kind ;;
  esac
}
if [[ $funcstack[1] == _thimble ]]; then _thimble "$@"; else compdef _thimble thimble; fi
)sh";

constexpr const char* kFish = R"sh(# fish completion of thimble, printed by: thimble completion fish
function __thimble
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  set -l program (command -s $words[1]; or echo thimble)
  set -l lines ($program complete $words "$word" 2>/dev/null)
  string join \n -- $lines[2..]
  switch "$lines[1]"
    case files
      __fish_complete_suffix "$word" ''
    case configs
      __fish_complete_suffix "$word" .yaml
    case directories
      __fish_complete_directories "$word"
    case runs
      set -q lines[2]; or __fish_complete_directories "$word"
  end
end
complete -c thimble -f -a '(__thimble)'
)sh";

// The words before the cursor, as far as they decide what can follow.
struct Words {
  const Command* command;          // null: there is no such command
  const Option* valued = nullptr;  // the option whose value is next
  std::set<const Option*> given = {};
  std::size_t arguments = 0;
  bool has_options = true;  // until --
  bool in_setting = false;  // after = of key=value

  void read(const std::string& word);
  const Option* argument() const;
};

bool is_list(const Option& option) { return option.parsed().get_items_expected_max() > 1; }

// Returns the option of "--out" or "--out=DIR", or null.
const Option* find_option(const Command& command, const std::string& word) {
  for (const Option& option : command.options())
    if (option.parsed().check_name(word.substr(0, word.find('=')))) return &option;
  return nullptr;
}

void Words::read(const std::string& word) {
  in_setting = word == "=" && valued == nullptr;
  if (command == nullptr || word == "=") return;
  if (valued != nullptr) {
    valued = nullptr;
  } else if (word == "--") {
    has_options = false;
  } else if (has_options && word.starts_with('-')) {
    const Option* option = find_option(*command, word);
    if (option == nullptr) return;
    given.insert(option);
    if (option->parsed().get_items_expected_max() > 0 && word.find('=') == word.npos) valued = option;
  } else if (!command->commands().empty()) {
    command = command->find(word);
  } else {
    ++arguments;
  }
}

// Returns the argument that is next, or null.
const Option* Words::argument() const {
  std::size_t before = arguments;
  for (const Option& option : command->options()) {
    if (!option.parsed().get_positional() || given.contains(option.substitute())) continue;
    if (is_list(option) || before-- == 0) return &option;
  }
  return nullptr;
}

void append(std::string& out, const std::string& word, const std::string& description = "") {
  out += word + (description.empty() ? "" : "\t" + description) + "\n";
}

// Appends the dotted keys of a section of the schema.
void append_keys(std::string& out, const Json& section, const std::string& parent = "") {
  for (const auto& [key, value] : section["properties"].items()) {
    if (value.contains("properties"))
      append_keys(out, value, parent + key + ".");
    else if (key != "base")
      append(out, parent + key + "=", value.value("description", ""));
  }
}

// Appends the runs beside the word whose names start like it; for a word without a directory, also those under runs/.
void append_runs(std::string& out, const std::string& word) {
  const std::size_t slash = word.rfind('/') + 1;
  std::set<std::string> folders = {word.substr(0, slash)};
  if (slash == 0) folders.insert("runs/");
  for (const std::string& folder : folders) {
    std::error_code failed;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const std::string name = entry->path().filename();
      if (name.starts_with(word.substr(slash)) && RunDirectory(entry->path()).is_run())
        append(out, escape_controls(folder + name));
    }
  }
}

// Returns the lines of an option's values, or of an argument. Each starts with `prefix`.
std::string values(const Option& option, const std::string& word, const std::string& prefix = "") {
  constexpr const char* kKinds[] = {"",     "files", "directories", "configs",
                                    "runs", "keys",  "directories", "directories"};
  std::string out = kKinds[static_cast<std::size_t>(option.kind())];
  if (option.kind() == Value::text && option.choices().empty()) out = option.parsed().get_type_name();
  out += '\n';
  for (const std::string& choice : option.choices()) append(out, prefix + choice);
  if (option.kind() == Value::config)
    for (const std::string& name : config_names()) append(out, prefix + name);
  if (option.kind() == Value::run) append_runs(out, word);
  if (option.kind() == Value::key) append_keys(out, config_schema());
  return out;
}

}  // namespace

std::string completions(const Command& program, const std::vector<std::string>& words) {
  Words before{.command = &program};
  for (std::size_t i = 1; i + 1 < words.size(); ++i) before.read(words[i]);
  const std::string word = words.size() < 2 ? "" : words.back();

  std::string out = "\n";
  if (before.valued != nullptr) return values(*before.valued, word);
  if (before.command == nullptr || before.in_setting) return out;
  const bool is_option = before.has_options && word.starts_with('-');
  const std::size_t value = is_option ? word.find('=') + 1 : 0;
  const Option* asked = is_option ? find_option(*before.command, word) : before.argument();
  if (value > 0) return asked == nullptr ? out : values(*asked, word.substr(value), word.substr(0, value));
  if (!is_option && asked != nullptr) return values(*asked, word);
  if (!is_option && !before.command->commands().empty()) {
    for (const Command& below : before.command->commands())
      append(out, below.parsed().get_name(), below.parsed().get_description());
    return out;
  }
  for (const Option& option : before.command->options())
    if (!option.parsed().get_positional() && (is_list(option) || !before.given.contains(&option)))
      append(out, option.parsed().get_name(), option.parsed().get_description());
  return out;
}

std::string completion_script(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

}  // namespace thimble::cli
