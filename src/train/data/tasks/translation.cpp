#include <array>
#include <unordered_map>

#include "thimble/train/task.h"

namespace thimble::tasks::translation {
namespace {

using Word = std::string_view;
using Numbers = std::array<Word, 2>;  // singular, plural
using Agreed = std::array<Word, 4>;   // masculine and feminine singular, masculine and feminine plural

struct Determiner {
  Agreed french;
  Numbers english;
};

struct Adjective {
  Agreed french;
  Word english;
};

struct Noun {
  std::size_t feminine;  // 0 or 1
  Numbers french, english;
};

struct Verb {
  Numbers present;  // third person
  Agreed participle;
  Numbers english;
  Word past;

  bool takes_etre() const { return !participle[1].empty(); }
};

constexpr Determiner kDeterminers[] = {
    {{"le", "la", "les", "les"}, {"the", "the"}},
    {{"un", "une", "des", "des"}, {"a", "some"}},
    {{"ce", "cette", "ces", "ces"}, {"this", "these"}},
    {{"mon", "ma", "mes", "mes"}, {"my", "my"}},
};
constexpr Word kDes = kDeterminers[1].french[2];
constexpr Word kDesBeforeAdjective = "de";

constexpr Adjective kBefore[] = {
    // the noun
    {{"petit", "petite", "petits", "petites"}, "small"},
    {{"grand", "grande", "grands", "grandes"}, "big"},
    {{"joli", "jolie", "jolis", "jolies"}, "pretty"},
    {{"bon", "bonne", "bons", "bonnes"}, "good"},
    {{"beau", "belle", "beaux", "belles"}, "beautiful"},
    {{"nouveau", "nouvelle", "nouveaux", "nouvelles"}, "new"},
};

constexpr Adjective kAfter[] = {
    {{"noir", "noire", "noirs", "noires"}, "black"},
    {{"blanc", "blanche", "blancs", "blanches"}, "white"},
    {{"gris", "grise", "gris", "grises"}, "grey"},
    {{"vert", "verte", "verts", "vertes"}, "green"},
    {{"brun", "brune", "bruns", "brunes"}, "brown"},
    {{"rouge", "rouge", "rouges", "rouges"}, "red"},
    {{"propre", "propre", "propres", "propres"}, "clean"},
    {{"doux", "douce", "doux", "douces"}, "soft"},
};

constexpr Noun kNouns[] = {
    // beings, then things
    {0, {"chien", "chiens"}, {"dog", "dogs"}},
    {0, {"chat", "chats"}, {"cat", "cats"}},
    {0, {"cheval", "chevaux"}, {"horse", "horses"}},
    {0, {"loup", "loups"}, {"wolf", "wolves"}},
    {0, {"renard", "renards"}, {"fox", "foxes"}},
    {0, {"garçon", "garçons"}, {"boy", "boys"}},
    {0, {"roi", "rois"}, {"king", "kings"}},
    {1, {"vache", "vaches"}, {"cow", "cows"}},
    {1, {"poule", "poules"}, {"hen", "hens"}},
    {1, {"souris", "souris"}, {"mouse", "mice"}},
    {1, {"chèvre", "chèvres"}, {"goat", "goats"}},
    {1, {"fille", "filles"}, {"girl", "girls"}},
    {1, {"reine", "reines"}, {"queen", "queens"}},
    {1, {"femme", "femmes"}, {"woman", "women"}},
    {0, {"biscuit", "biscuits"}, {"biscuit", "biscuits"}},
    {0, {"gâteau", "gâteaux"}, {"cake", "cakes"}},
    {0, {"livre", "livres"}, {"book", "books"}},
    {0, {"chapeau", "chapeaux"}, {"hat", "hats"}},
    {0, {"jouet", "jouets"}, {"toy", "toys"}},
    {1, {"carotte", "carottes"}, {"carrot", "carrots"}},
    {1, {"poire", "poires"}, {"pear", "pears"}},
    {1, {"fleur", "fleurs"}, {"flower", "flowers"}},
    {1, {"lettre", "lettres"}, {"letter", "letters"}},
    {1, {"pierre", "pierres"}, {"stone", "stones"}},
};

constexpr std::int64_t kBeings = 14;
static_assert(kNouns[kBeings].english[0] == "biscuit");

constexpr Verb kVerbs[] = {
    // with an object, then without
    {{"mange", "mangent"}, {"mangé"}, {"eats", "eat"}, "ate"},
    {{"voit", "voient"}, {"vu"}, {"sees", "see"}, "saw"},
    {{"trouve", "trouvent"}, {"trouvé"}, {"finds", "find"}, "found"},
    {{"prend", "prennent"}, {"pris"}, {"takes", "take"}, "took"},
    {{"regarde", "regardent"}, {"regardé"}, {"watches", "watch"}, "watched"},
    {{"porte", "portent"}, {"porté"}, {"carries", "carry"}, "carried"},
    {{"suit", "suivent"}, {"suivi"}, {"follows", "follow"}, "followed"},
    {{"aime", "aiment"}, {"aimé"}, {"loves", "love"}, "loved"},
    {{"cache", "cachent"}, {"caché"}, {"hides", "hide"}, "hid"},
    {{"perd", "perdent"}, {"perdu"}, {"loses", "lose"}, "lost"},
    {{"dort", "dorment"}, {"dormi"}, {"sleeps", "sleep"}, "slept"},
    {{"court", "courent"}, {"couru"}, {"runs", "run"}, "ran"},
    {{"chante", "chantent"}, {"chanté"}, {"sings", "sing"}, "sang"},
    {{"danse", "dansent"}, {"dansé"}, {"dances", "dance"}, "danced"},
    {{"nage", "nagent"}, {"nagé"}, {"swims", "swim"}, "swam"},
    {{"tombe", "tombent"}, {"tombé", "tombée", "tombés", "tombées"}, {"falls", "fall"}, "fell"},
    {{"part", "partent"}, {"parti", "partie", "partis", "parties"}, {"leaves", "leave"}, "left"},
    {{"reste", "restent"}, {"resté", "restée", "restés", "restées"}, {"stays", "stay"}, "stayed"},
    {{"vient", "viennent"}, {"venu", "venue", "venus", "venues"}, {"comes", "come"}, "came"},
};

constexpr std::int64_t kTransitive = 10;
static_assert(kVerbs[kTransitive].past == "slept");

constexpr Numbers kAvoir = {"a", "ont"}, kEtre = {"est", "sont"};

constexpr ExampleSize kMaxLength = {4 + 2 + 4, 4 + 1 + 4};

// The vocabulary: every word once, French words first.
struct Lexicon {
  std::vector<std::string> names;
  std::unordered_map<Word, std::int32_t> token;

  Lexicon() {
    add(kDesBeforeAdjective);
    for (const Determiner& determiner : kDeterminers) add(determiner.french);
    for (const Adjective& adjective : kBefore) add(adjective.french);
    for (const Adjective& adjective : kAfter) add(adjective.french);
    for (const Noun& noun : kNouns) add(noun.french);
    add(kAvoir);
    add(kEtre);
    for (const Verb& verb : kVerbs) {
      add(verb.present);
      add(verb.participle);
    }
    for (const Determiner& determiner : kDeterminers) add(determiner.english);
    for (const Adjective& adjective : kBefore) add(adjective.english);
    for (const Adjective& adjective : kAfter) add(adjective.english);
    for (const Noun& noun : kNouns) add(noun.english);
    for (const Verb& verb : kVerbs) {
      add(verb.english);
      add(verb.past);
    }
  }

 private:
  void add(Word word) {
    if (!word.empty() && token.emplace(word, std::ssize(names)).second) names.emplace_back(word);
  }
  template <std::size_t N>
  void add(const std::array<Word, N>& words) {
    for (const Word word : words) add(word);
  }
};

const Lexicon& lexicon() {
  static const Lexicon built;
  return built;
}

template <class T, std::size_t N>
const T& choose(SampleRng& rng, const T (&from)[N]) {
  return from[rng.below(N)];
}

void say(std::vector<std::int32_t>& sentence, Word word) { sentence.push_back(lexicon().token.at(word)); }

// Appends a noun with its determiner and adjectives to both sentences; returns the form that agrees with it.
std::size_t say_noun(SampleRng& rng, const Noun& noun, Example& example) {
  auto& [french, english, attends] = example;
  const auto plural = static_cast<std::size_t>(rng.below(2));
  const std::size_t form = 2 * plural + noun.feminine;
  const Determiner& determiner = choose(rng, kDeterminers);
  const Adjective* const before = rng.below(2) == 0 ? &choose(rng, kBefore) : nullptr;
  const Adjective* const after = rng.below(2) == 0 ? &choose(rng, kAfter) : nullptr;

  const Word article = determiner.french[form];
  say(french, article == kDes && before != nullptr ? kDesBeforeAdjective : article);
  if (before != nullptr) say(french, before->french[form]);
  say(french, noun.french[plural]);
  if (after != nullptr) say(french, after->french[form]);

  say(english, determiner.english[plural]);
  if (before != nullptr) say(english, before->english);
  if (after != nullptr) say(english, after->english);
  say(english, noun.english[plural]);
  return form;
}

// Appends a verb that agrees with a subject of that form.
void say_verb(SampleRng& rng, const Verb& verb, std::size_t subject, Example& example) {
  auto& [french, english, attends] = example;
  const std::size_t plural = subject / 2;
  const bool past = rng.below(2) == 0;
  if (past) say(french, (verb.takes_etre() ? kEtre : kAvoir)[plural]);
  say(french, past ? verb.participle[verb.takes_etre() ? subject : 0] : verb.present[plural]);
  say(english, past ? verb.past : verb.english[plural]);
}

void sample(const TaskConfig&, SampleRng& rng, Example& example) {
  example.input.clear();
  example.target.clear();
  example.input.reserve(static_cast<std::size_t>(kMaxLength.input));
  example.target.reserve(static_cast<std::size_t>(kMaxLength.target));
  const std::size_t subject = say_noun(rng, kNouns[rng.below(kBeings)], example);
  const std::int64_t verb = rng.below(std::ssize(kVerbs));
  say_verb(rng, kVerbs[verb], subject, example);
  if (verb < kTransitive) say_noun(rng, choose(rng, kNouns), example);
}

std::vector<std::string> tokens(const TaskConfig&) { return lexicon().names; }

ExampleSize size(const TaskConfig&) { return kMaxLength; }

// Phrases with one noun: number, determiner, and adjectives or none.
constexpr double kPhrases =
    2.0 * std::size(kDeterminers) * (1 + std::size(kBefore)) * (1 + std::size(kAfter));

double distinct_inputs(const TaskConfig&) {
  constexpr double kObjects = kPhrases * std::size(kNouns);
  return kPhrases * kBeings * 2 * (kTransitive * kObjects + (std::size(kVerbs) - kTransitive));
}

// The most frequent words are `the` and `my`, one determiner of four. A noun has one adjective on average.
double chance(const TaskConfig&) {
  constexpr double kNounsSaid = 1 + kTransitive / static_cast<double>(std::size(kVerbs));
  return kNounsSaid / std::size(kDeterminers) / (3 * kNounsSaid + 1);
}

template <std::size_t N>
bool is_one_of(const Adjective (&adjectives)[N], Word word) {
  for (const Adjective& adjective : adjectives)
    for (const Word form : adjective.french)
      if (form == word) return true;
  return false;
}

bool is_one_of(const Numbers& forms, Word word) { return word == forms[0] || word == forms[1]; }

// Aligns both sentences word by word.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  std::size_t french = 0, english = 0;
  const auto here = [&](const auto& words) {
    return french < example.input.size() &&
           is_one_of(words, lexicon().names[static_cast<std::size_t>(example.input[french])]);
  };
  const auto align = [&](std::size_t source) {
    if (english++ == i) keys.push_back({static_cast<std::int32_t>(source)});
  };
  const auto align_noun = [&] {
    align(french++);
    if (here(kBefore)) align(french++);
    const std::size_t noun = french++;
    if (here(kAfter)) align(french++);
    align(noun);
  };
  align_noun();
  if (here(kAvoir) || here(kEtre)) ++french;
  align(french++);
  if (french < example.input.size()) align_noun();
}

}  // namespace

Task task() {
  return {
      .summary = "French sentences in English",
      .definition =
          "A sentence is a noun and a verb and, if the verb takes one, another noun as its object, such "
          "as: le chien noir a mangé un biscuit, the black dog ate a biscuit. The verb, its tense, "
          "present or past (passé composé), the nouns (a being as subject, a being or a thing as "
          "object), their number and their determiners (le, un, ce, mon) are uniform. With probability 1/2 "
          "a noun has an adjective that French puts before it, and with probability 1/2 one that French "
          "puts after it. French agrees in gender and number, also the participle after être; `des` is "
          "`de` before an adjective. No word begins so that French would elide or English say `an`. What "
          "both languages spell alike is one token: a, biscuit, biscuits. An answer depends on the word "
          "that it translates, in the past on the participle. It has no keys. Attention was first used to "
          "translate between the two languages, Bahdanau, Cho and Bengio 2015.",
      .tokens = tokens,
      .size = size,
      .sample = sample,
      .distinct_inputs = distinct_inputs,
      .chance = chance,
      .relevant = relevant,
      .kinds = {"translated word"},
      .candidates = all_positions,
      .vary = sample};
}

}  // namespace thimble::tasks::translation
