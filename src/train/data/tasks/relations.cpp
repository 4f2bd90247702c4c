#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/core/portable_math.h"
#include "thimble/train/task.h"

namespace thimble::tasks::relations {
namespace {

// The vocabulary: function words, nouns, verbs, and all ordered pairs of nouns.
constexpr std::string_view kFunctionWords[] = {"the", "that", "was", "by", "and", "today", "last", "night"};
constexpr std::string_view kNouns[] = {"dog", "cat", "fox", "cow", "goat", "horse", "wolf", "bear"};
constexpr std::string_view kVerbs[] = {"chased", "followed", "pushed", "pulled", "watched", "licked"};
constexpr std::int32_t kThe = 0, kThat = 1, kWas = 2, kBy = 3, kAnd = 4, kToday = 5, kLast = 6, kNight = 7,
                       kFirstNoun = 8, kFirstVerb = kFirstNoun + std::ssize(kNouns),
                       kFirstPair = kFirstVerb + std::ssize(kVerbs);
constexpr std::int32_t kOthers = std::ssize(kNouns) - 1;  // other nouns
// "last night", twice "the dog that was chased by the cat was pushed by the fox", and "and".
constexpr std::int64_t kMaxLength = 2 + 2 * 13 + 1;
constexpr std::int64_t kOpeners = 3;

// The relative clause after one of a clause's two nouns: none, "that chased the cat", "that the cat chased"
// or "that was chased by the cat".
enum class Relative { none, agent, patient, passive };
constexpr std::int64_t kRelatives = 4;

std::int32_t pair_token(std::int32_t agent, std::int32_t patient) {
  return kFirstPair + agent * kOthers + patient - (patient > agent ? 1 : 0);
}

// A writer of a sentence and its answers.
class Writer {
 public:
  Writer(SampleRng& rng, Example& example) : rng_(rng), example_(example) {
    for (std::size_t i = 0; i < nouns_.size(); ++i) nouns_[i] = static_cast<std::int32_t>(i);
  }

  void say(std::int32_t word, std::int32_t answer = kIgnore) {
    example_.input.push_back(word);
    example_.target.push_back(answer);
  }

  void say_opener() {
    const std::int64_t words = rng_.below(kOpeners);
    if (words == 1) say(kToday);
    if (words != 2) return;
    say(kLast);
    say(kNight);
  }

  void say_clause() {
    const bool passive = rng_.below(2) == 0, at_first = rng_.below(2) == 0;
    const auto relative = static_cast<Relative>(rng_.below(kRelatives));
    const std::int32_t first = draw_noun(), second = draw_noun();
    say_noun(first);
    if (at_first) say_relative(first, relative);
    if (passive)
      say_passive(second, first);
    else
      say_verb(first, second);
    say_noun(second);
    if (!at_first) say_relative(second, relative);
  }

 private:
  // Returns a noun that has not been drawn yet.
  std::int32_t draw_noun() {
    const auto chosen =
        drawn_ + static_cast<std::size_t>(rng_.below(std::ssize(nouns_) - static_cast<std::int64_t>(drawn_)));
    std::swap(nouns_[drawn_], nouns_[chosen]);
    return nouns_[drawn_++];
  }

  void say_noun(std::int32_t noun) {
    say(kThe);
    say(kFirstNoun + noun);
  }

  void say_verb(std::int32_t agent, std::int32_t patient) {
    const auto verb = static_cast<std::int32_t>(rng_.below(std::ssize(kVerbs)));
    say(kFirstVerb + verb, pair_token(agent, patient));
  }

  void say_passive(std::int32_t agent, std::int32_t patient) {
    say(kWas);
    say_verb(agent, patient);
    say(kBy);
  }

  void say_relative(std::int32_t noun, Relative relative) {
    if (relative == Relative::none) return;
    const std::int32_t other = draw_noun();
    say(kThat);
    if (relative == Relative::agent) say_verb(noun, other);
    if (relative == Relative::passive) say_passive(other, noun);
    say_noun(other);
    if (relative == Relative::patient) say_verb(other, noun);
  }

  SampleRng& rng_;
  Example& example_;
  std::array<std::int32_t, std::size(kNouns)> nouns_;
  std::size_t drawn_ = 0;  // number of drawn nouns, the first of nouns_
};

void sample(const TaskConfig&, SampleRng& rng, Example& example) {
  example.input.clear();
  example.target.clear();
  example.input.reserve(static_cast<std::size_t>(kMaxLength));
  example.target.reserve(static_cast<std::size_t>(kMaxLength));
  Writer writer(rng, example);
  const bool two = rng.below(2) == 0;
  writer.say_opener();
  writer.say_clause();
  if (!two) return;
  writer.say(kAnd);
  writer.say_clause();
}

// Puts another opener in front of half of the sentences with room for it, so that nouns move.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  sample(config, rng, example);
  auto& [input, target, attends] = example;
  if (std::ssize(input) == kMaxLength || rng.below(2) == 0) return;
  input.insert(input.begin(), kToday);
  target.insert(target.begin(), kIgnore);
}

std::vector<std::string> tokens(const TaskConfig&) {
  std::vector<std::string> names(std::begin(kFunctionWords), std::end(kFunctionWords));
  names.insert(names.end(), std::begin(kNouns), std::end(kNouns));
  names.insert(names.end(), std::begin(kVerbs), std::end(kVerbs));
  for (const std::string_view agent : kNouns)
    for (const std::string_view patient : kNouns)
      if (agent != patient) names.push_back(fmt::format("{}>{}", agent, patient));
  return names;
}

ExampleSize size(const TaskConfig&) { return {kMaxLength, kMaxLength}; }

// Returns the ways to choose that many distinct nouns in order, and that many verbs.
double choices(int nouns, int verbs) {
  double ways = portable::power(std::size(kVerbs), verbs);
  for (int chosen = 0; chosen < nouns; ++chosen) ways *= static_cast<double>(std::ssize(kNouns) - chosen);
  return ways;
}

// A clause is active or passive, and has no relative clause, or one of three kinds after one of two nouns,
// with another noun and verb.
double distinct_inputs(const TaskConfig&) {
  constexpr double kPlain = 2, kWithRelative = 2 * (kRelatives - 1) * 2;
  const double one = kPlain * choices(2, 1) + kWithRelative * choices(3, 2);
  const double two = kPlain * kPlain * choices(4, 2) + 2 * kPlain * kWithRelative * choices(5, 3) +
                     kWithRelative * kWithRelative * choices(6, 4);
  return kOpeners * (one + two);
}

double chance(const TaskConfig&) { return 1 / static_cast<double>(std::ssize(kNouns) * kOthers); }

// A verb asks for its agent and patient.
bool knowable(const TaskConfig&, std::span<const std::int32_t> input, std::size_t i) {
  return input[i] >= kFirstVerb && input[i] < kFirstVerb + std::ssize(kVerbs);
}

// The positions of both nouns, each of which occurs once in the sentence.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  if (example.target[i] == kIgnore) return;
  const std::int32_t pair = example.target[i] - kFirstPair, agent = pair / kOthers, other = pair % kOthers;
  for (const auto& [noun, kind] : {std::pair{agent, 0}, {other + (other >= agent ? 1 : 0), 1}}) {
    const auto place = std::ranges::find(example.input, kFirstNoun + noun);
    keys.push_back({static_cast<std::int32_t>(place - example.input.begin()), kind});
  }
}

// The positions of all nouns.
void candidates(const TaskConfig&, const Example& example, std::size_t, std::vector<std::int32_t>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] >= kFirstNoun && example.input[j] < kFirstVerb)
      keys.push_back(static_cast<std::int32_t>(j));
}

}  // namespace

Task task() {
  return {
      .summary = "who did it and to whom, for every verb of a sentence",
      .definition =
          "A clause is `the NOUN VERB the NOUN` or `the NOUN was VERB by the NOUN`. With probability 3/4 "
          "one of its nouns, either equally likely, is followed by `that VERB the NOUN`, `that the NOUN "
          "VERB` or `that was VERB by the NOUN`. A sentence is a clause or, as often, two with `and` "
          "between them, after `today`, `last night` or neither, such as: the dog that the cat chased was "
          "pushed by the fox. There are 8 nouns, of which a sentence has none twice, and 6 verbs, whose "
          "form is the same in active and passive. At a verb the answer is one token for who did it and to "
          "whom, cat>dog at `chased` and fox>dog at `pushed`; other positions have no answer. So one "
          "position needs two others at once, which the words around it determine, also those after it: "
          "the mask must be none. It has no keys. Semantic roles, Gildea and Jurafsky 2002.",
      .sparse = true,
      .tokens = tokens,
      .size = size,
      .sample = sample,
      .distinct_inputs = distinct_inputs,
      .chance = chance,
      .knowable = knowable,
      .relevant = relevant,
      .kinds = {"agent", "patient"},
      .candidates = candidates,
      .vary = vary};
}

}  // namespace thimble::tasks::relations
