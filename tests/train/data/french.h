// A little French grammar for tests: rules of inflection, a dictionary, and what a sentence means in English.
#pragma once

#include <bit>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace thimble::french {

using Word = std::string;
using Words = std::vector<Word>;

// What a French form can be, as a set.
enum Form { kMasculine = 1, kFeminine = 2, kMasculines = 4, kFeminines = 8 };
constexpr int kSingular = kMasculine | kFeminine, kPlural = kMasculines | kFeminines;

inline bool ends(const Word& word, const char* with) { return word.ends_with(with); }

inline Word french_plural(const Word& word) {
  if (ends(word, "s") || ends(word, "x")) return word;
  if (ends(word, "al")) return word.substr(0, word.size() - 1) + "ux";
  return word + (ends(word, "eau") ? "x" : "s");
}

inline Word feminine(const Word& word) {
  const std::map<Word, Word> irregular = {
      {"blanc", "blanche"}, {"beau", "belle"}, {"nouveau", "nouvelle"}, {"doux", "douce"}, {"bon", "bonne"}};
  if (irregular.contains(word)) return irregular.at(word);
  return ends(word, "e") ? word : word + "e";
}

inline Word english_plural(const Word& word) {
  const std::map<Word, Word> irregular = {{"mouse", "mice"}, {"woman", "women"}, {"wolf", "wolves"}};
  if (irregular.contains(word)) return irregular.at(word);
  return word + (ends(word, "x") ? "es" : "s");
}

inline Word third_person(const Word& verb) {
  if (ends(verb, "ch")) return verb + "es";
  return ends(verb, "ry") ? verb.substr(0, verb.size() - 1) + "ies" : verb + "s";
}

inline const std::map<Word, Word> kAdjectivesBefore = {{"petit", "small"},    {"grand", "big"},
                                                       {"joli", "pretty"},    {"bon", "good"},
                                                       {"beau", "beautiful"}, {"nouveau", "new"}};
inline const std::map<Word, Word> kAdjectivesAfter = {{"noir", "black"}, {"blanc", "white"}, {"gris", "grey"},
                                                      {"vert", "green"}, {"brun", "brown"},  {"rouge", "red"},
                                                      {"doux", "soft"},  {"propre", "clean"}};
inline const std::map<Word, Word> kMasculineBeings = {
    {"chien", "dog"},  {"chat", "cat"},   {"cheval", "horse"}, {"loup", "wolf"},
    {"renard", "fox"}, {"garçon", "boy"}, {"roi", "king"}};
inline const std::map<Word, Word> kFeminineBeings = {
    {"vache", "cow"},  {"poule", "hen"},   {"souris", "mouse"}, {"chèvre", "goat"},
    {"fille", "girl"}, {"reine", "queen"}, {"femme", "woman"}};
inline const std::map<Word, Word> kMasculineThings = {
    {"biscuit", "biscuit"}, {"gâteau", "cake"}, {"livre", "book"}, {"chapeau", "hat"}, {"jouet", "toy"}};
inline const std::map<Word, Word> kFeminineThings = {
    {"carotte", "carrot"}, {"poire", "pear"}, {"fleur", "flower"}, {"lettre", "letter"}, {"pierre", "stone"}};

struct Verb {
  Word participle, english, past, he{}, they{};  // the present, unless it is regular

  Word present(bool plural) const {
    if (!he.empty()) return plural ? they : he;
    const Word stem = participle.substr(0, participle.size() - Word("é").size());
    return stem + (plural ? "ent" : "e");
  }
};
inline const std::vector<Verb> kTransitive = {{"mangé", "eat", "ate"},
                                              {"vu", "see", "saw", "voit", "voient"},
                                              {"trouvé", "find", "found"},
                                              {"pris", "take", "took", "prend", "prennent"},
                                              {"regardé", "watch", "watched"},
                                              {"porté", "carry", "carried"},
                                              {"suivi", "follow", "followed", "suit", "suivent"},
                                              {"aimé", "love", "loved"},
                                              {"caché", "hide", "hid"},
                                              {"perdu", "lose", "lost", "perd", "perdent"}};
inline const std::vector<Verb> kIntransitive = {{"dormi", "sleep", "slept", "dort", "dorment"},
                                                {"couru", "run", "ran", "court", "courent"},
                                                {"chanté", "sing", "sang"},
                                                {"dansé", "dance", "danced"},
                                                {"nagé", "swim", "swam"}};
inline const std::vector<Verb> kWithEtre = {{"tombé", "fall", "fell"},
                                            {"parti", "leave", "left", "part", "partent"},
                                            {"resté", "stay", "stayed"},
                                            {"venu", "come", "came", "vient", "viennent"}};

struct Meaning {
  Word english;
  Word entry{};  // what it stands under in a dictionary, unless it is the same
};
// Every French form of words of a kind, and what it means as each of the forms that it can be.
using Meanings = std::map<Form, Meaning>;
using Dictionary = std::map<Word, Meanings>;

inline Dictionary adjectives(const std::map<Word, Word>& words) {
  Dictionary out;
  for (const auto& [word, english] : words) {
    out[word][kMasculine] = out[feminine(word)][kFeminine] = {english};
    out[french_plural(word)][kMasculines] = out[french_plural(feminine(word))][kFeminines] = {english};
  }
  return out;
}

inline Dictionary nouns(std::initializer_list<std::map<Word, Word>> masculine,
                        std::initializer_list<std::map<Word, Word>> feminine) {
  Dictionary out;
  const auto add = [&](const auto& lists, Form singular, Form plural) {
    for (const auto& words : lists)
      for (const auto& [word, english] : words) {
        out[word][singular] = {english};
        out[french_plural(word)][plural] = {english_plural(english), english};
      }
  };
  add(masculine, kMasculine, kMasculines);
  add(feminine, kFeminine, kFeminines);
  return out;
}

inline const Dictionary kBefore = adjectives(kAdjectivesBefore), kAfter = adjectives(kAdjectivesAfter);
inline const Dictionary kBeings = nouns({kMasculineBeings}, {kFeminineBeings});
inline const Dictionary kAnything =
    nouns({kMasculineBeings, kMasculineThings}, {kFeminineBeings, kFeminineThings});
inline const Dictionary kDeterminers = {
    {"le", {{kMasculine, {"the"}}}},
    {"la", {{kFeminine, {"the"}}}},
    {"les", {{kMasculines, {"the"}}, {kFeminines, {"the"}}}},
    {"un", {{kMasculine, {"a"}}}},
    {"une", {{kFeminine, {"a"}}}},
    {"des", {{kMasculines, {"some", "a"}}, {kFeminines, {"some", "a"}}}},
    {"de", {{kMasculines, {"some", "a"}}, {kFeminines, {"some", "a"}}}},
    {"ce", {{kMasculine, {"this"}}}},
    {"cette", {{kFeminine, {"this"}}}},
    {"ces", {{kMasculines, {"these", "this"}}, {kFeminines, {"these", "this"}}}},
    {"mon", {{kMasculine, {"my"}}}},
    {"ma", {{kFeminine, {"my"}}}},
    {"mes", {{kMasculines, {"my"}}, {kFeminines, {"my"}}}},
};

// What a French sentence means, and where the words of its translation come from. Slots are the choices it
// was made of, "" where there is nothing: number, determiner, adjectives and noun of the subject, tense,
// verb, then the same of the object. It is wrong French if `right` is false.
struct Translation {
  Words english, slots;
  std::vector<std::int32_t> sources;
  bool right = true;

  explicit Translation(const Words& words) : french_(words) {
    const int subject = read_noun(kBeings);
    const bool has_object = read_verb(subject);
    if (has_object) read_noun(kAnything);
    right = right && at_ == french_.size();
  }

 private:
  Words french_;
  std::size_t at_ = 0;

  Word here() const { return at_ < french_.size() ? french_[at_] : ""; }
  void say(const Word& word, std::size_t source) {
    english.push_back(word);
    sources.push_back(static_cast<std::int32_t>(source));
  }

  // The forms that all words of a noun can have; right if that is exactly one.
  int read_noun(const Dictionary& nouns) {
    const auto forms = [](const Meanings& meanings) {
      int all = 0;
      for (const auto& [form, _] : meanings) all |= form;
      return all;
    };
    const Dictionary* const kinds[] = {&kDeterminers, &kBefore, &nouns, &kAfter};
    const Meanings* found[4] = {};
    std::size_t places[4] = {};
    int common = kSingular | kPlural;
    for (std::size_t kind = 0; kind < 4; ++kind) {
      const auto entry = kinds[kind]->find(here());
      if (entry == kinds[kind]->end()) continue;
      found[kind] = &entry->second;
      common &= forms(entry->second);
      places[kind] = at_++;
    }
    const auto form = static_cast<Form>(common);
    const bool one = std::popcount(static_cast<unsigned>(common)) == 1;
    right = right && one && found[0] != nullptr && found[2] != nullptr;
    if (!right) return 0;
    // "des" stands before a noun, "de" before an adjective.
    right =
        found[0]->at(form).english != "some" || french_[places[0]] == (found[1] == nullptr ? "des" : "de");
    slots.push_back(form & kPlural ? "plural" : "singular");
    for (const std::size_t kind : {0, 1, 3, 2}) {
      const Meaning meaning = found[kind] != nullptr ? found[kind]->at(form) : Meaning{""};
      if (found[kind] != nullptr) say(meaning.english, places[kind]);
      slots.push_back(meaning.entry.empty() ? meaning.english : meaning.entry);
    }
    return common;
  }

  // Returns whether an object follows.
  bool read_verb(int subject) {
    const bool plural = subject & kPlural;
    const Word first = here();
    const bool avoir = first == (plural ? "ont" : "a"), etre = first == (plural ? "sont" : "est");
    if (avoir || etre) ++at_;
    for (const auto* verbs : {&kTransitive, &kIntransitive, &kWithEtre}) {
      for (const Verb& verb : *verbs) {
        Word participle = verb.participle;
        if (etre && subject & (kFeminine | kFeminines)) participle += "e";
        if (etre && plural) participle += "s";
        const bool past = (verbs == &kWithEtre ? etre : avoir) && here() == participle;
        const bool present = !avoir && !etre && here() == verb.present(plural);
        if (!past && !present) continue;
        say(past ? verb.past : plural ? verb.english : third_person(verb.english), at_++);
        slots.insert(slots.end(), {past ? "past" : "present", verb.english});
        return verbs == &kTransitive;
      }
    }
    right = false;
    return false;
  }
};

}  // namespace thimble::french
