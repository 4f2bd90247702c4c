// Sentences are read from left to right here, where the task makes them.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "catch.h"
#include "samples.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

using Words = std::vector<std::string>;

const TaskConfig kRelations{.name = "relations"};
const std::set<std::string> kNouns = {"dog", "cat", "fox", "cow", "goat", "horse", "wolf", "bear"};
const std::set<std::string> kVerbs = {"chased", "followed", "pushed", "pulled", "watched", "licked"};

const Words& vocabulary() {
  static const Words names = find_task("relations").tokens(kRelations);
  return names;
}

Words split(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Positions of who did it and to whom, by the position of the verb.
using Roles = std::map<std::size_t, std::pair<std::size_t, std::size_t>>;

// Reads sentences; not `right` is one that the grammar does not have.
class Reader {
 public:
  explicit Reader(const Words& words) : words_(words) {
    if (!accept("today") && accept("last")) right = accept("night");
    int clauses = 0;
    do clause();
    while (++clauses < 2 && accept("and"));
    right = right && at_ == words_.size();
  }
  Roles roles;
  std::string pattern;  // N and V for nouns and verbs
  bool right = true;

 private:
  bool accept(const std::string& word) {
    if (at_ >= words_.size() || words_[at_] != word) return false;
    ++at_;
    pattern += word + " ";
    return true;
  }
  std::size_t one_of(const std::set<std::string>& words, const char* kind) {
    right = right && at_ < words_.size() && words.contains(words_[at_]);
    pattern += kind;
    return at_++;
  }
  std::size_t noun() {
    right = accept("the") && right;
    return one_of(kNouns, "N ");
  }
  std::size_t verb() { return one_of(kVerbs, "V "); }

  // With what follows it: a verb that has no noun before it is done by this one.
  std::size_t noun_with_relative() {
    const std::size_t first = noun();
    if (accept("that")) {
      ++relatives_;
      if (accept("was")) {
        const std::size_t done = verb();
        right = accept("by") && right;
        roles[done] = {noun(), first};
      } else if (at_ < words_.size() && words_[at_] == "the") {
        const std::size_t agent = noun();
        roles[verb()] = {agent, first};
      } else {
        const std::size_t done = verb();
        roles[done] = {first, noun()};
      }
    }
    return first;
  }

  void clause() {
    relatives_ = 0;
    const std::size_t first = noun_with_relative();
    const bool passive = accept("was");
    const std::size_t done = verb();
    if (passive) right = accept("by") && right;
    const std::size_t second = noun_with_relative();
    roles[done] = passive ? std::pair{second, first} : std::pair{first, second};
    right = right && relatives_ <= 1;
  }

  Words words_;
  std::size_t at_ = 0;
  int relatives_ = 0;
};

Words names(const Tokens& tokens) {
  Words out;
  for (const std::int32_t token : tokens) out.push_back(vocabulary().at(static_cast<std::size_t>(token)));
  return out;
}

}  // namespace

TEST_CASE("the parser of the test finds who did what to whom", "[tasks]") {
  const auto pairs = [](const char* text) {
    const Words words = split(text);
    const Reader reader(words);
    std::string out = reader.right ? "" : "wrong";
    for (const auto& [verb, role] : reader.roles)
      if (reader.right) out += words[verb] + " " + words[role.first] + ">" + words[role.second] + " ";
    return out;
  };
  CHECK(pairs("the dog chased the cat") == "chased dog>cat ");
  CHECK(pairs("the dog was chased by the cat") == "chased cat>dog ");
  CHECK(pairs("the dog that the cat chased was pushed by the fox") == "chased cat>dog pushed fox>dog ");
  CHECK(pairs("last night the dog that chased the cat pushed the fox") == "chased dog>cat pushed dog>fox ");
  CHECK(pairs("the dog that was chased by the cat pushed the fox") == "chased cat>dog pushed dog>fox ");
  CHECK(pairs("the dog pushed the fox that the cat licked and the cow was pulled by the goat") ==
        "pushed dog>fox licked cat>fox pulled goat>cow ");
  for (const char* wrong :
       {"the dog chased", "dog chased the cat", "the dog was chased the cat", "the dog chased the cat and",
        "the dog that chased the cat", "the dog that chased the cat pushed the fox that licked the cow",
        "the chased dog the cat", "last the dog chased the cat"})
    CHECK(pairs(wrong) == "wrong");
}

TEST_CASE("the answer of relations, at every verb, is who did it and to whom", "[tasks]") {
  std::map<std::string, double> patterns;
  const auto examples = draw(kRelations, 20000);
  for (const Example& e : examples) {
    const Words words = names(e.input);
    const Reader reader(words);
    INFO(fmt::format("{}", fmt::join(words, " ")));
    REQUIRE(reader.right);
    ++patterns[reader.pattern];
    REQUIRE(e.target.size() == e.input.size());
    std::multiset<std::string> nouns;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (kNouns.contains(words[i])) nouns.insert(words[i]);
      REQUIRE((e.target[i] != kIgnore) == kVerbs.contains(words[i]));
      if (e.target[i] == kIgnore) {
        REQUIRE(relevant(kRelations, e, i).empty());
        continue;
      }
      const auto [agent, patient] = reader.roles.at(i);
      REQUIRE(names({e.target[i]})[0] == words[agent] + ">" + words[patient]);
      REQUIRE(relevant(kRelations, e, i) ==
              Tokens{static_cast<std::int32_t>(agent), static_cast<std::int32_t>(patient)});
    }
    REQUIRE(std::set<std::string>(nouns.begin(), nouns.end()).size() == nouns.size());
  }
  // Active or passive; no relative clause in a quarter, else one of three after one of two nouns.
  CHECK(patterns.size() == 3 * (14 + 14 * 14));
  CHECK_THAT(patterns["the N V the N "], WithinAbs(20000 / 48.0, 105));
  CHECK_THAT(patterns["today the N was V by the N "], WithinAbs(20000 / 48.0, 105));
  CHECK_THAT(patterns["the N that the N V was V by the N "], WithinAbs(20000 / 96.0, 70));
  CHECK_THAT(patterns["last night the N V the N that was V by the N "], WithinAbs(20000 / 96.0, 70));
  CHECK_THAT(patterns["the N V the N and the N V the N "], WithinAbs(20000 / 384.0, 37));
}

TEST_CASE("neither the position of a verb nor one of its nouns determines the other noun", "[tasks][slow]") {
  using Places = std::pair<std::size_t, std::size_t>;
  std::map<std::size_t, std::map<Places, double>> by_place;
  std::map<std::string, double> answers;
  double verbs = 0, straight = 0, nearest = 0;
  for (const Example& e : draw(kRelations, 60000)) {
    const Words words = names(e.input);
    const Reader reader(words);
    for (const auto& [verb, role] : reader.roles) {
      ++verbs;
      ++by_place[verb][role];
      ++answers[words[role.first] + ">" + words[role.second]];
      straight += role.first < verb && verb < role.second;
      std::size_t before = verb, after = verb;
      while (!kNouns.contains(words[before])) --before;
      while (after < words.size() && !kNouns.contains(words[after])) ++after;
      nearest += std::set{role.first, role.second} == std::set{before, after};
    }
  }
  double guessed = 0;  // by who knows the place of the verb alone
  for (const auto& [_, roles] : by_place) {
    double most = 0;
    for (const auto& [places, n] : roles) most = std::max(most, n);
    guessed += most;
  }
  CHECK(guessed / verbs < 0.4);
  CHECK(straight / verbs < 0.5);
  CHECK(nearest / verbs < 0.7);
  CHECK(answers.size() == 56);
  for (const auto& [pair, n] : answers) {
    INFO(pair);
    CHECK_THAT(n / verbs, WithinAbs(find_task("relations").chance(kRelations), 0.0025));
  }
}

TEST_CASE("relations counts its sentences", "[tasks]") {
  // For each pattern, every noun is another one and every verb is free.
  std::map<std::string, double> patterns;
  for (const Example& e : draw(kRelations, 40000)) {
    double nouns = 8, sentences = 1;
    for (const std::string& word : names(e.input)) {
      if (kNouns.contains(word)) sentences *= nouns--;
      if (kVerbs.contains(word)) sentences *= 6;
    }
    patterns[Reader(names(e.input)).pattern] = sentences;
  }
  double count = 0;
  for (const auto& [_, sentences] : patterns) count += sentences;
  CHECK(find_task("relations").distinct_inputs(kRelations) == count);
  std::set<std::string> expected = kNouns;
  expected.insert(kVerbs.begin(), kVerbs.end());
  expected.insert({"the", "that", "was", "by", "and", "today", "last", "night"});
  for (const std::string& agent : kNouns)
    for (const std::string& patient : kNouns)
      if (agent != patient) expected.insert(agent + ">" + patient);
  CHECK(std::set<std::string>(vocabulary().begin(), vocabulary().end()) == expected);
}
