#include "program/cli/help.h"

#include <string>

#include "catch.h"

using namespace thimble;

TEST_CASE("help has a column of terms and wraps their descriptions", "[cli]") {
  cli::Command program("thimble", "Train tiny transformers", "1.0");
  cli::Command& command = program.add_command("train", "Train a model");
  std::string config, out;
  std::vector<std::string> overrides;
  std::int64_t jobs = 2;
  bool quiet = false;
  command.add_option("CONFIG", config, "Config file").required();
  command.add_option("OVERRIDES", overrides, "Changes to it").value_name("key=value");
  command.add_option("--out", out, "Run directory").value_name("DIR");
  command
      .add_option(
          "--jobs", jobs,
          "Runs at a time, each of them a process of one thread, so that all of the cores of the machine have work")
      .value_name("N")
      .shows_default();
  command.add_option("--a-long-name-of-an-option", out, "Below its term").one_of({"a", "b"}).value_name("X");
  command.add_flag("--quiet", quiet, "Print nothing");
  command.ending("Exit status: 0 success; 1 a check failed, or a target was missed.\nA second paragraph.\n");
  CHECK(cli::usage(command) == "thimble train CONFIG [key=value ...] [options]");
  const std::string text = cli::help(command);
  INFO(text);
  CHECK(text.starts_with(R"(Usage: thimble train CONFIG [key=value ...] [options]

Train a model

Arguments:
  CONFIG              Config file
  key=value ...       Changes to it

Options:
)"));
  CHECK(text.find(R"(  --out DIR           Run directory
  --jobs N            Runs at a time, each of them a process of one thread, so
                      that all of the cores of the machine have work [2]
)") != std::string::npos);
  CHECK(text.find("  --a-long-name-of-an-option X\n                      Below its term; one of a, b\n") !=
        std::string::npos);
  CHECK(text.ends_with(
      "\n\nExit status: 0 success; 1 a check failed, or a target was missed.\nA second paragraph.\n"));
  CHECK(cli::help(command, 40).ends_with(R"(
Exit status: 0 success; 1 a check
failed, or a target was missed.
A second paragraph.
)"));
  CHECK(cli::help(command, 60).find(R"(
  --jobs N            Runs at a time, each of them a process
                      of one thread, so that all of the
)") != std::string::npos);
}
