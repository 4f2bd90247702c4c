#include <array>
#include <span>

#include "thimble/train/task.h"

namespace thimble::tasks::coreference {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 5> kFunctionWords = {"the", "did", "not", "it", "was"};
constexpr std::array<std::string_view, 4> kOpeners = {"yesterday", "today", "once", "later"};
constexpr std::array<std::string_view, 12> kAnimals = {"animal", "dog",  "cat",   "horse",  "fox",    "cow",
                                                       "goat",   "deer", "sheep", "donkey", "rabbit", "bear"};
constexpr std::array<std::string_view, 12> kPlaces = {"street", "road", "bridge", "path",  "trail", "alley",
                                                      "lane",   "pass", "ramp",   "slope", "field", "meadow"};
constexpr std::array<std::string_view, 5> kAnimalVerbs = {"cross", "enter", "take", "follow", "use"};
constexpr std::array<std::string_view, 5> kPlaceVerbs = {"stopped", "delayed", "halted", "deterred",
                                                         "hindered"};
constexpr std::array<std::string_view, 2> kLinks = {"because", "since"};
constexpr std::array<std::string_view, 3> kDegrees = {"too", "so", "very"};
constexpr std::array<std::string_view, 8> kAnimalAdjectives = {"tired",  "hungry", "thirsty", "scared",
                                                               "sleepy", "sick",   "lazy",    "shy"};
constexpr std::array<std::string_view, 8> kPlaceAdjectives = {"wide",    "steep",    "icy",   "flooded",
                                                              "crowded", "slippery", "rocky", "narrow"};

// The vocabulary, in this order.
constexpr std::array<Words, 10> kVocabulary = {kFunctionWords,    kOpeners,        kAnimals, kPlaces,
                                               kAnimalVerbs,      kPlaceVerbs,     kLinks,   kDegrees,
                                               kAnimalAdjectives, kPlaceAdjectives};

// Returns the token of a word, given by its index in a list.
constexpr std::int32_t token(Words list, std::int64_t word) {
  std::size_t before = 0;
  for (const Words words : kVocabulary) {
    if (words.data() == list.data()) break;
    before += words.size();
  }
  return static_cast<std::int32_t>(before) + static_cast<std::int32_t>(word);
}

constexpr std::int32_t kThe = token(kFunctionWords, 0), kDid = token(kFunctionWords, 1),
                       kNot = token(kFunctionWords, 2), kIt = token(kFunctionWords, 3),
                       kWas = token(kFunctionWords, 4);
constexpr std::int64_t kMaxLength = 13;  // tokens

// Choices: which noun comes first, which one the adjective suits, and every word.
constexpr std::int64_t kSentences = 2 * 2 * (std::ssize(kOpeners) + 1) * std::ssize(kAnimals) *
                                    std::ssize(kPlaces) * std::ssize(kAnimalVerbs) * std::ssize(kLinks) *
                                    std::ssize(kDegrees) * std::ssize(kAnimalAdjectives);
static_assert(kAnimalVerbs.size() == kPlaceVerbs.size() &&
              kAnimalAdjectives.size() == kPlaceAdjectives.size() && kAnimals.size() == kPlaces.size());

// Draws one number, whose digits, each in its own base, are the choices.
void sample(const TaskConfig&, SampleRng& rng, Example& example) {
  std::int64_t rest = rng.below(kSentences);
  const auto digit = [&rest](std::int64_t base) {
    const std::int64_t lowest = rest % base;
    rest /= base;
    return lowest;
  };
  const auto choose = [&digit](Words words) { return token(words, digit(std::ssize(words))); };

  std::vector<std::int32_t>&input = example.input, &target = example.target;
  input.clear();
  input.reserve(kMaxLength);
  target.reserve(kMaxLength);
  const auto say = [&input](auto... words) { (input.push_back(words), ...); };

  const bool animal_first = digit(2) == 0, means_animal = digit(2) == 0;
  const std::int64_t opener = digit(std::ssize(kOpeners) + 1);
  const std::int32_t animal = choose(kAnimals), place = choose(kPlaces);
  if (opener < std::ssize(kOpeners)) say(token(kOpeners, opener));
  if (animal_first)
    say(kThe, animal, kDid, kNot, choose(kAnimalVerbs), kThe, place);
  else
    say(kThe, place, choose(kPlaceVerbs), kThe, animal);
  say(choose(kLinks));
  target.assign(input.size(), kIgnore);
  target.push_back(means_animal ? animal : place);
  const Words adjectives = means_animal ? Words(kAnimalAdjectives) : Words(kPlaceAdjectives);
  say(kIt, kWas);
  say(choose(kDegrees));
  say(choose(adjectives));
  target.resize(input.size(), kIgnore);
}

// Puts another opener in front of half of the sentences with room for it, so that nouns move.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  sample(config, rng, example);
  auto& [input, target, attends] = example;
  if (std::ssize(input) == kMaxLength || rng.below(2) == 0) return;
  input.insert(input.begin(), token(kOpeners, rng.below(std::ssize(kOpeners))));
  target.insert(target.begin(), kIgnore);
}

std::vector<std::string> tokens(const TaskConfig&) {
  std::vector<std::string> names;
  for (const Words words : kVocabulary) names.insert(names.end(), words.begin(), words.end());
  return names;
}

ExampleSize size(const TaskConfig&) { return {kMaxLength, kMaxLength}; }

double distinct_inputs(const TaskConfig&) { return kSentences; }

// Animals and places are equally likely, and so is each noun among them.
double chance(const TaskConfig&) { return 1 / static_cast<double>(kAnimals.size() + kPlaces.size()); }

// A pronoun asks for its noun.
bool knowable(const TaskConfig&, std::span<const std::int32_t> input, std::size_t i) {
  return input[i] == kIt;
}

// The position of the noun that is the answer, and of the adjective, which comes last.
void relevant(const TaskConfig& config, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  if (example.target[i] == kIgnore) return;
  answer_positions(config, example, i, keys);
  keys.push_back({static_cast<std::int32_t>(example.input.size()) - 1, 1});
}

// The positions of both nouns.
void candidates(const TaskConfig&, const Example& example, std::size_t, std::vector<std::int32_t>& keys) {
  constexpr std::int32_t kFirst = token(kAnimals, 0), kEnd = token(kAnimalVerbs, 0);
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] >= kFirst && example.input[j] < kEnd) keys.push_back(static_cast<std::int32_t>(j));
}

}  // namespace

Task task() {
  return {.summary = "what `it` means in a sentence",
          .definition =
              "Sentences are uniform over `[opener] the ANIMAL did not VERB the PLACE LINK it was DEGREE "
              "ADJECTIVE` and `[opener] the PLACE VERB the ANIMAL LINK it was DEGREE ADJECTIVE`, such as: "
              "the dog did not cross the street because it was too tired. Every adjective suits only "
              "animals (tired, hungry, ...) or only places (wide, steep, ...). At `it` the answer is the "
              "noun that it refers to; other positions have no answer. Both classes are equally likely in "
              "either order, so only the adjective determines the answer, and as it comes after `it`, the "
              "mask must be none. It has no keys. Winograd schemas, Levesque, Davis and Morgenstern 2012; "
              "the example is that of Uszkoreit 2017 on the Transformer.",
          .sparse = true,
          .tokens = tokens,
          .size = size,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = chance,
          .knowable = knowable,
          .relevant = relevant,
          .kinds = {"referent", "adjective"},
          .other_kinds = 1,
          .candidates = candidates,
          .vary = vary};
}

}  // namespace thimble::tasks::coreference
