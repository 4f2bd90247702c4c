#include <string>
#include <vector>

#include "catch.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/text_table.h"

using namespace thimble;

TEST_CASE("a table fits itself into the terminal, and says what it leaves out", "[cli]") {
  cli::TextTable table("name", {{.title = "a"}, {.title = "first ", .rank = -1}, {.title = "b ", .rank = 1}});
  table.add("x", {"1", "2 ", "3 "});
  table.add("a label of twenty-two", {"10", "20 "});
  table.add_text("  a note on the rows");
  CHECK(table.text(40) ==
        "name                   a first  b\n"
        "x                      1     2  3\n"
        "a label of twenty-two 10    20\n"
        "  a note on the rows\n");
  CHECK(table.text(30) ==
        "name                   a b\n"
        "x                      1 3\n"
        "a label of twenty-two 10\n"
        "  a note on the rows\n"
        "Not shown in 30 columns:\n"
        "first; see --json.\n");
  CHECK(table.text(19) ==
        "name           a b\n"
        "x              1 3\n"
        "a label of\n"
        "  twenty-two\n"
        "              10\n"
        "  a note on the\n"
        "    rows\n"
        "Not shown in 19\n"
        "columns: first; see\n"
        "--json.\n");
  CHECK(table.text(2).starts_with("name\n   b\n"));  // one column stays
  CHECK(table.text(7).starts_with("name\n   b\nx  3\na label\n  of\n  twenty-two\n"));
}

TEST_CASE("task targets by kind are printed for a head that attends to them most", "[cli]") {
  std::vector<HeadScore> scores;
  for (const char* name : {"previous_token", "next_token", "mirror", "same_token", "duplicate_token",
                           "induction", "task_target", "offset", "absolute_position", "self"})
    scores.push_back({.name = name, .value = 0.1, .chance = 0.1, .attainable = 1, .eligible = 500});
  scores[6].value = 0.325;
  CHECK(cli::kinds_text(scores).empty());
  scores.push_back({.name = "task_target", .value = 0.53, .eligible = 250, .kind = "agent"});
  scores.push_back({.name = "task_target", .value = 0.12, .eligible = 250, .kind = "patient"});
  CHECK(cli::kinds_text(scores) == "; target by kind: agent 0.530, patient 0.120");
  scores[2].value = 0.5;  // mirror
  CHECK(cli::kinds_text(scores).empty());
  scores[2].value = scores[6].value = 0.1;  // none is above chance
  CHECK(cli::kinds_text(scores).empty());
}
