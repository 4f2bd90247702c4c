#include <set>
#include <string>

#include "catch.h"
#include "samples.h"

using namespace thimble;
using namespace thimble::samples;

TEST_CASE("the answer at the name of a scale is its adjective, either end equally often", "[tasks]") {
  const TaskConfig config{.name = "antonyms"};
  const std::vector<std::string> words = find_task("antonyms").tokens(config);
  CHECK(std::set<std::string>(words.begin(), words.end()).size() == words.size());
  const std::map<std::string, std::set<std::string>> ends = {
      {"temperature", {"hot", "cold"}}, {"size", {"big", "small"}},    {"speed", {"fast", "slow"}},
      {"age", {"old", "young"}},        {"price", {"dear", "cheap"}},  {"sound", {"loud", "quiet"}},
      {"height", {"tall", "short"}},    {"depth", {"deep", "shallow"}}};
  std::map<std::string, int> answers;
  for (const Example& e : draw(config, 2000)) {
    REQUIRE(e.input.size() == 8);
    REQUIRE(e.target.size() == 8);
    std::set<std::string> adjectives, wanted;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::string& word = words.at(static_cast<std::size_t>(e.input[i]));
      CHECK((e.target[i] == kIgnore) == (i < 4));
      if (i < 4) {
        adjectives.insert(word);
        continue;
      }
      const std::string& answer = words.at(static_cast<std::size_t>(e.target[i]));
      CHECK(ends.at(word).contains(answer));
      wanted.insert(answer);
      ++answers[answer];
    }
    CHECK(wanted == adjectives);
    CHECK(adjectives.size() == 4);
  }
  // Four of the sixteen adjectives, no two of them of one scale, and their scales in any of 24 orders.
  std::int64_t choices = 0;
  for (int i = 0; i < 16 * 16 * 16 * 16; ++i)
    choices += std::set<int>{i % 8, i / 16 % 8, i / 256 % 8, i / 4096 % 8}.size() == 4 ? 1 : 0;
  CHECK(find_task("antonyms").distinct_inputs(config) == static_cast<double>(24 * choices));
  // 16 answers, each in a quarter of the sentences: 500 of 2,000, with a standard deviation of 19.
  CHECK(answers.size() == 16);
  for (const auto& [answer, count] : answers) CHECK(std::abs(count - 500) < 100);
}
