// Texts of the messages about configs, sweeps and experiments, in one file, messages.txt.
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "problems.h"
#include "program/reproduce/experiment.h"
#include "program/sweep/sweep.h"
#include "source_directory.h"
#include "thimble/train/config.h"
#include "thimble/train/file.h"
#include "train/config/report.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

// An entry of messages.txt: the kind of file, its lines after "> ", changes of the command line after "$ ",
// and the messages that result.
struct Entry {
  std::string kind, file, messages;
  std::vector<std::string> overrides;

  // Returns the entry as messages.txt has it, with these messages.
  std::string text(const std::string& with) const {
    std::string out = kind + '\n';
    std::istringstream lines(file);
    for (std::string line; std::getline(lines, line);) out += "> " + line + '\n';
    for (const std::string& override_text : overrides) out += "$ " + override_text + '\n';
    return out + with;
  }
};

std::vector<Entry> read_entries(std::istream& in) {
  std::vector<Entry> entries;
  bool is_open = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) {
      is_open = false;
    } else if (!is_open) {
      entries.push_back({.kind = line, .file = {}, .messages = {}, .overrides = {}});
      is_open = true;
    } else if (line.starts_with("> ")) {
      entries.back().file += line.substr(2) + '\n';
    } else if (line.starts_with("$ ")) {
      entries.back().overrides.push_back(line.substr(2));
    } else {
      entries.back().messages += line + '\n';
    }
  }
  return entries;
}

// Returns the messages about the entry's file, a line each. Sweeps and experiments are folder/t.yaml, and may
// name ../base.yaml.
std::string messages_of(const Entry& entry) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path().string() + "/folder/";
  std::filesystem::create_directory(folder);
  write_file(folder + "t.yaml", entry.file);
  write_file(directory / "base.yaml", "model: {d_model: 32}\n");
  const std::vector<ConfigProblem> problems = problems_of([&] {
    if (entry.kind == "config") parse_config(entry.file, "t.yaml", entry.overrides);
    if (entry.kind == "sweep") load_sweep(folder + "t.yaml", entry.overrides);
    if (entry.kind == "experiment") load_experiment(folder + "t.yaml");
  });
  std::string out;
  for (const ConfigProblem& problem : problems) out += config::problem_text(problem) + '\n';
  for (std::size_t at; (at = out.find(folder)) != std::string::npos;) out.erase(at, folder.size());
  return out;
}

}  // namespace

TEST_CASE("messages are those of messages.txt", "[config]") {
  const std::string path = source_directory() + "/tests/train/config/messages.txt";
  std::ifstream in(path);
  std::string header, now, differences;
  for (std::string line; in.peek() == '#' && std::getline(in, line);) header += line + '\n';
  const std::vector<Entry> entries = read_entries(in);
  std::ptrdiff_t count = 0;
  now = header;
  for (const Entry& entry : entries) {
    const std::string messages = messages_of(entry);
    count += std::ranges::count(messages, '\n');
    now += '\n' + entry.text(messages);
    if (messages != entry.messages)
      differences +=
          fmt::format("\n{}is expected, but the messages are\n{}", entry.text(entry.messages), messages);
  }
  CHECK(count > 150);
  if (differences.empty()) return;
  const std::filesystem::path updated = std::filesystem::temp_directory_path() / "thimble_messages.txt";
  write_file(updated, now);
  FAIL(differences << "\nIf the new messages are right: cp " << updated.string() << ' ' << path);
}
