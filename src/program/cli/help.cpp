#include "program/cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
std::string term(const Option::Info& option) {
  std::string out = option.name == "--help" ? "-h, --help" : option.name;
  if (option.is_argument()) out = option.value();
  if (!option.is_argument() && !option.flag) out += " " + option.value();
  if (!option.repeats) return out;
  return out + (option.is_argument() ? " ..." : ",...");
}

std::string description(const Option::Info& option) {
  std::string out = option.help;
  if (!option.is_argument() && !option.choices.empty())
    out += fmt::format("; one of {}", fmt::join(option.choices, ", "));
  if (!option.default_text.empty()) out += fmt::format(" [{}]", option.default_text);
  return out;
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
  out += fmt::format(".SS {}\n{}.\n", roff(usage(command)), roff(command.summary()));
  for (const Option& option : command.options())
    if (option.info().name != "--help")
      out += fmt::format(".TP\n.B {}\n{}\n", roff(term(option.info())), roff(description(option.info())));
  for (const Command& below : command.commands()) append_manual(out, below);
}

}  // namespace

std::string usage(const Command& command) {
  std::string out = command.path();
  if (!command.commands().empty()) out += " COMMAND";
  for (const Option& option : command.options())
    if (option.info().is_argument())
      out += option.info().required ? " " + term(option.info()) : fmt::format(" [{}]", term(option.info()));
  return command.options().size() > 1 ? out + " [options]" : out;
}

std::string help(const Command& command, std::size_t width) {
  std::string arguments, options, commands;
  for (const Option& option : command.options())
    (option.info().is_argument() ? arguments : options) +=
        row(term(option.info()), description(option.info()), width);
  for (const Command& below : command.commands()) commands += row(below.name(), below.summary(), width);
  std::string out = wrapped("Usage: " + usage(command), width) + "\n" + wrapped(command.summary(), width);
  for (const auto& [title, rows] :
       {std::pair("Commands", &commands), std::pair("Arguments", &arguments), std::pair("Options", &options)})
    if (!rows->empty()) out += fmt::format("\n{}:\n{}", title, *rows);
  out += '\n';
  std::istringstream paragraphs(command.ending());
  for (std::string paragraph; std::getline(paragraphs, paragraph);) out += wrapped(paragraph, width);
  return out;
}

std::string manual_page(const Command& program, const std::string& version) {
  std::string out = fmt::format(
      ".TH THIMBLE 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nthimble \\- {}\n.SH SYNOPSIS\n.B thimble\n"
      ".I COMMAND\n[options]\n.SH COMMANDS\n",
      roff(version), roff(program.summary()));
  for (const Command& command : program.commands()) append_manual(out, command);
  return out + fmt::format(".SH EXIT STATUS\n{}", roff(program.ending()));
}

}  // namespace thimble::cli
