#include <cmath>
#include <set>
#include <string>

#include "catch.h"
#include "samples.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

using WordSet = std::set<std::string>;

const TaskConfig kCoreference{.name = "coreference"};
const WordSet kAnimals = {"animal", "dog",  "cat",   "horse",  "fox",    "cow",
                          "goat",   "deer", "sheep", "donkey", "rabbit", "bear"};
const WordSet kPlaces = {"street", "road", "bridge", "path",  "trail", "alley",
                         "lane",   "pass", "ramp",   "slope", "field", "meadow"};
const WordSet kOnlyAnimals = {"tired", "hungry", "thirsty", "scared", "sleepy", "sick", "lazy", "shy"};
const WordSet kOnlyPlaces = {"wide", "steep", "icy", "flooded", "crowded", "slippery", "rocky", "narrow"};

struct Sentence {
  std::vector<std::string> words;
  std::string opener;  // empty, or the first word

  Sentence(const std::vector<std::string>& vocabulary, const Tokens& tokens) {
    for (const std::int32_t token : tokens) words.push_back(vocabulary.at(static_cast<std::size_t>(token)));
    if (words[0] == "the") return;
    opener = words[0];
    words.erase(words.begin());
  }

  // The first noun, the verb, the second noun, the link, the degree and the adjective, at these positions.
  bool animal_first() const { return words.size() == 12; }
  std::vector<std::string> slots() const {
    return animal_first() ? std::vector{words[1], words[4], words[6], words[7], words[10], words[11]}
                          : std::vector{words[1], words[2], words[4], words[5], words[8], words[9]};
  }
  std::string pattern() const {
    std::string out;
    const auto open = slots();
    for (const std::string& word : words)
      out += (std::find(open.begin(), open.end(), word) == open.end() ? word : "_") + " ";
    return out;
  }
};

}  // namespace

TEST_CASE("the answer of coreference, at `it`, is the noun that the adjective suits", "[tasks]") {
  const auto vocabulary = find_task("coreference").tokens(kCoreference);
  CHECK(WordSet(vocabulary.begin(), vocabulary.end()).size() == vocabulary.size());
  for (const Example& e : draw(kCoreference, 2000)) {
    const Sentence sentence(vocabulary, e.input);
    CHECK(sentence.pattern() ==
          (sentence.animal_first() ? "the _ did not _ the _ _ it was _ _ " : "the _ _ the _ _ it was _ _ "));
    const auto slots = sentence.slots();
    const std::string animal = slots[sentence.animal_first() ? 0 : 2];
    const std::string place = slots[sentence.animal_first() ? 2 : 0];
    CHECK((kAnimals.contains(animal) && kPlaces.contains(place)));
    CHECK(kOnlyAnimals.contains(slots[5]) != kOnlyPlaces.contains(slots[5]));
    const std::string& meant = kOnlyAnimals.contains(slots[5]) ? animal : place;
    REQUIRE(e.target.size() == e.input.size());
    CHECK(std::ssize(e.input) <= find_task("coreference").size(kCoreference).input);
    for (std::size_t i = 0; i < e.input.size(); ++i) {
      if (vocabulary[static_cast<std::size_t>(e.input[i])] != "it") {
        CHECK(e.target[i] == kIgnore);
        CHECK(relevant(kCoreference, e, i).empty());
        continue;
      }
      REQUIRE(e.target[i] != kIgnore);
      CHECK(vocabulary[static_cast<std::size_t>(e.target[i])] == meant);
      const Tokens keys = relevant(kCoreference, e, i);
      REQUIRE(keys.size() == 2);
      CHECK(e.input[static_cast<std::size_t>(keys[0])] == e.target[i]);
      CHECK(vocabulary[static_cast<std::size_t>(e.input[static_cast<std::size_t>(keys[1])])] == slots[5]);
    }
  }
}

TEST_CASE("neither the order nor the nouns of a sentence determine the answer at `it`", "[tasks]") {
  const auto vocabulary = find_task("coreference").tokens(kCoreference);
  std::map<std::pair<bool, bool>, double> kinds;
  std::map<std::pair<std::string, bool>, double> nouns;
  const auto examples = draw(kCoreference, 48000);
  for (const Example& e : examples) {
    const Sentence sentence(vocabulary, e.input);
    const auto slots = sentence.slots();
    const bool means_animal = kOnlyAnimals.contains(slots[5]);
    ++kinds[{sentence.animal_first(), means_animal}];
    ++nouns[{slots[0], means_animal}];
    ++nouns[{slots[2], means_animal}];
  }
  CHECK(kinds.size() == 4);
  for (const auto& [_, n] : kinds) CHECK_THAT(n, WithinAbs(12000, 390));
  CHECK(nouns.size() == 48);
  for (const auto& [_, n] : nouns) CHECK_THAT(n, WithinAbs(2000, 180));
  const auto shares = answer_shares(examples);
  CHECK(shares.size() == 24);
  for (const auto& [_, share] : shares)
    CHECK_THAT(share, WithinAbs(find_task("coreference").chance(kCoreference), 0.004));
}

TEST_CASE("coreference counts its sentences", "[tasks][slow]") {
  const auto vocabulary = find_task("coreference").tokens(kCoreference);
  const double sentences = find_task("coreference").distinct_inputs(kCoreference);
  // WordSet of every slot are chosen independently, but for the verbs, which depend on the order.
  std::map<bool, std::vector<WordSet>> seen;
  std::set<Tokens> distinct;
  std::size_t longest = 0;
  const int count = 100000;
  for (const Example& e : draw(kCoreference, count)) {
    const Sentence sentence(vocabulary, e.input);
    auto words = sentence.slots();
    words.push_back(sentence.opener);
    auto& slots = seen[sentence.animal_first()];
    slots.resize(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) slots[i].insert(words[i]);
    distinct.insert(e.input);
    longest = std::max(longest, e.input.size());
  }
  double product = 0;
  for (const auto& [_, slots] : seen) {
    double choices = 1;
    for (const WordSet& words : slots) choices *= static_cast<double>(words.size());
    product += choices;
  }
  CHECK(sentences == product);
  // As many different ones as that many equally likely sentences give, standard deviation below 90.
  const double expected = sentences * (1 - std::pow(1 - 1 / sentences, count));
  CHECK_THAT(static_cast<double>(distinct.size()), WithinAbs(expected, 400));
  CHECK(static_cast<std::int64_t>(longest) == find_task("coreference").size(kCoreference).input);
}
