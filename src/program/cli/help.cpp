#include "program/cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kColumn = 22;

// Returns "  --out DIR           What it is, in as many lines as it takes".
std::string row(const std::string& term, const std::string& text, std::size_t width) {
  const std::string lines = wrapped(text, width - kColumn);
  std::string out = "  " + term;
  out += out.size() + 1 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - out.size(), ' ');
  for (std::size_t start = 0, end = 0; (end = lines.find('\n', start)) != std::string::npos;
       start = end + 1) {
    if (start > 0) out += std::string(kColumn, ' ');
    out += lines.substr(start, end + 1 - start);
  }
  return out;
}

// Returns "--out DIR", "--split NAME,..." or "key=value ...".
std::string term(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool repeats = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (option.get_positional()) return (type.empty() ? option.get_name() : type) + (repeats ? " ..." : "");
  std::string out = option.get_snames().empty() ? "" : fmt::format("-{}, ", option.get_snames().front());
  out += option.get_name();
  if (option.get_items_expected_max() > 0) out += " " + type;
  return repeats ? out + ",..." : out;
}

std::string description(const Option& option) {
  const CLI::Option& parsed = option.parsed();
  std::string out = parsed.get_description();
  if (!parsed.get_positional() && !option.choices().empty())
    out += fmt::format("; one of {}", fmt::join(option.choices(), ", "));
  const std::string usual = parsed.get_default_str();
  return usual.empty() ? out : fmt::format("{} [{}]", out, usual);
}

// Escapes what man would take for markup.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_line = i == 0 || text[i - 1] == '\n';
    if (starts_line && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '-') out += '\\';
    out += text[i] == '\\' ? "\\e" : std::string(1, text[i]);
  }
  return out;
}

void append_manual(std::string& out, const Command& command) {
  out += fmt::format(".SS {}\n{}.\n", roff(usage(command)), roff(command.parsed().get_description()));
  for (const Option& option : command.options())
    if (&option.parsed() != command.parsed().get_help_ptr())
      out += fmt::format(".TP\n.B {}\n{}\n", roff(term(option.parsed())), roff(description(option)));
  for (const Command& below : command.commands()) append_manual(out, below);
}

}  // namespace

std::string usage(const Command& command) {
  std::string out = command.path();
  if (!command.commands().empty()) out += " COMMAND";
  for (const Option& option : command.options())
    if (const CLI::Option& parsed = option.parsed(); parsed.get_positional())
      out += parsed.get_required() ? " " + term(parsed) : fmt::format(" [{}]", term(parsed));
  return command.options().size() > 1 ? out + " [options]" : out;
}

std::string help(const Command& command, std::size_t width) {
  std::string arguments, options, commands;
  for (const Option& option : command.options())
    if (option.parsed().get_positional()) arguments += row(term(option.parsed()), description(option), width);
  for (const std::string& group : command.parsed().get_groups()) {
    std::string rows;
    for (const Option& option : command.options())
      if (!option.parsed().get_positional() && option.parsed().get_group() == group)
        rows += row(term(option.parsed()), description(option), width);
    if (!rows.empty()) options += fmt::format("\n{}:\n{}", group, rows);
  }
  for (const Command& below : command.commands())
    commands += row(below.parsed().get_name(), below.parsed().get_description(), width);
  std::string out =
      wrapped("Usage: " + usage(command), width) + "\n" + wrapped(command.parsed().get_description(), width);
  if (!commands.empty()) out += "\nCommands:\n" + commands;
  if (!arguments.empty()) out += "\nArguments:\n" + arguments;
  out += options;
  out += '\n';
  std::istringstream paragraphs(command.parsed().get_footer());
  for (std::string paragraph; std::getline(paragraphs, paragraph);) out += wrapped(paragraph, width);
  return out;
}

std::string manual_page(const Command& program, const std::string& version) {
  std::string out = fmt::format(
      ".TH THIMBLE 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nthimble \\- {}\n.SH SYNOPSIS\n.B thimble\n"
      ".I COMMAND\n[options]\n.SH COMMANDS\n",
      roff(version), roff(program.parsed().get_description()));
  for (const Command& command : program.commands()) append_manual(out, command);
  return out + fmt::format(".SH EXIT STATUS\n{}", roff(program.parsed().get_footer()));
}

}  // namespace thimble::cli
