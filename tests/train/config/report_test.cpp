#include "train/config/report.h"

#include "catch.h"

using namespace thimble;
using namespace thimble::config;

TEST_CASE("a problem is told with what is known of it", "[config]") {
  CHECK(problem_text({.rule = "no"}) == "no");
  CHECK(problem_text({.key = "a.b", .rule = "no"}) == "a.b: no");
  CHECK(problem_text({.key = "a", .location = {.source = "t.yaml"}, .rule = "no"}) == "t.yaml: a: no");
  const SourceLocation place{.source = "t.yaml", .line = 3, .column = 4};
  CHECK(problem_text({.key = "a", .location = place, .rule = "no"}) == "t.yaml:3:4: a: no");
  CHECK(problem_text({.location = place, .rule = "no"}) == "t.yaml:3:4: no");
  const SourceLocation argument{.source = "a=1", .argument = 2};  // names the key already
  CHECK(problem_text({.key = "a", .location = argument, .rule = "no"}) == "command line: a=1: no");
}

TEST_CASE("a problem takes one line, whatever its key is", "[config]") {
  CHECK(problem_text({.key = "a\nb\x1b", .rule = "no"}) == "a b : no");
  CHECK(problem_text({.key = std::string(100, 'x'), .rule = "no"}) == std::string(80, 'x') + "...: no");
}

TEST_CASE("a config error holds its problems, and shows a hundred", "[config]") {
  const ConfigError one("no such file");
  REQUIRE(one.problems().size() == 1);
  CHECK(one.problems()[0].rule == "no such file");
  CHECK(one.what() == std::string("no such file"));
  const ConfigError many = config_error("t.yaml", std::vector<ConfigProblem>(102, {.rule = "no"}));
  CHECK(many.problems().size() == 102);
  CHECK_THAT(many.what(), StartsWith("t.yaml: 102 problems\nno\nno\n") && EndsWith("\nno\nand 2 more"));
  CHECK(std::string_view(many.what()).size() == 20 + 3 * 100 + 11);
}
