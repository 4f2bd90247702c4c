// The task lists the forms of words; here rules make them, and translate word by word.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "catch.h"
#include "french.h"
#include "samples.h"

using namespace thimble;
using namespace thimble::samples;
using namespace thimble::french;

namespace {

const TaskConfig kTranslation{.name = "translation"};

Words words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<Word>(in), {}};
}

Words token_words(const Tokens& tokens) {
  static const auto vocabulary = find_task("translation").tokens(kTranslation);
  Words out;
  for (const std::int32_t token : tokens) out.push_back(vocabulary.at(static_cast<std::size_t>(token)));
  return out;
}

}  // namespace

TEST_CASE("the grammar of the test is French", "[tasks]") {
  const std::map<std::string, std::string> right = {
      {"le chien noir a mangé un biscuit", "the black dog ate a biscuit"},
      {"la petite souris grise dort", "the small grey mouse sleeps"},
      {"ces belles femmes sont parties", "these beautiful women left"},
      {"mes loups sont tombés", "my wolves fell"},
      {"des chevaux blancs ont pris les nouveaux chapeaux", "some white horses took the new hats"},
      {"de bons garçons portent une pierre douce", "some good boys carry a soft stone"},
      {"cette reine regarde mon jouet", "this queen watches my toy"},
      {"les souris voient ce renard", "the mice see this fox"},
  };
  for (const auto& [french, english] : right) {
    INFO(french);
    const Translation translation(words_of(french));
    CHECK(translation.right);
    CHECK(translation.english == words_of(english));
  }
  for (const char* wrong : {"la chien dort",
                            "le chien noire dort",
                            "le chien dorment",
                            "les chien dorment",
                            "souris dort",
                            "le chien ont dormi",
                            "le chien a tombé",
                            "la vache est tombé",
                            "les vaches sont tombés",
                            "le chien est dormi",
                            "des petits chiens dorment",
                            "de chiens dorment",
                            "le noir chien dort",
                            "le chien petit dort",
                            "les cheval dorment",
                            "le chien mange",
                            "le chien dort un biscuit",
                            "le biscuit dort",
                            "la vache a mangée un biscuit",
                            "les souris dort",
                            "le chien noir"}) {
    INFO(wrong);
    CHECK_FALSE(Translation(words_of(wrong)).right);
  }
}

TEST_CASE("translation is right French, and the English that it means", "[tasks]") {
  std::size_t reordered = 0, shorter = 0;
  for (const Example& e : draw(kTranslation, 20000)) {
    const Words french = token_words(e.input);
    const Translation translation(french);
    INFO(fmt::format("{}", fmt::join(french, " ")));
    REQUIRE(translation.right);
    REQUIRE(token_words(e.target) == translation.english);
    for (std::size_t i = 0; i < e.target.size(); ++i)
      REQUIRE(relevant(kTranslation, e, i) == Tokens{translation.sources[i]});
    reordered += !std::is_sorted(translation.sources.begin(), translation.sources.end());
    shorter += e.target.size() < e.input.size();
  }
  CHECK_THAT(static_cast<double>(shorter), WithinAbs(10000, 300));
  // Some noun has an adjective after it: half of those with one noun, three quarters of the others.
  CHECK_THAT(static_cast<double>(reordered), WithinAbs(20000 * (0.5 * 9 / 19 + 0.75 * 10 / 19), 300));
}

TEST_CASE("every word of the translation task is used, in the language that it is of", "[tasks]") {
  const auto vocabulary = find_task("translation").tokens(kTranslation);
  std::set<Word> french, english, both;
  for (const Example& e : draw(kTranslation, 20000)) {
    for (const Word& word : token_words(e.input)) french.insert(word);
    for (const Word& word : token_words(e.target)) english.insert(word);
  }
  std::set_intersection(french.begin(), french.end(), english.begin(), english.end(),
                        std::inserter(both, both.end()));
  CHECK(both == std::set<Word>{"a", "biscuit", "biscuits"});
  std::set<Word> all = french;
  all.merge(english);
  CHECK(all == std::set<Word>(vocabulary.begin(), vocabulary.end()));
  // "a", and no elision: but for the verbs, no word that can follow an article begins with a vowel.
  for (const auto* words : {&kBefore, &kAfter, &kAnything})
    for (const auto& [word, meanings] : *words) {
      CHECK(std::string("aeiouhâéê").find(word[0]) == std::string::npos);
      CHECK(std::string("aeiou").find(meanings.begin()->second.english[0]) == std::string::npos);
    }
}

TEST_CASE("translation draws its choices uniformly and counts its sentences", "[tasks][slow]") {
  std::map<std::pair<std::size_t, std::size_t>, std::map<Word, double>> slots;  // by sort of sentence, slot
  std::map<std::size_t, double> sentences;
  const auto examples = draw(kTranslation, 60000);
  for (const Example& e : examples) {
    const Translation translation(token_words(e.input));
    const std::size_t sort = translation.slots.size();
    ++sentences[sort];
    for (std::size_t slot = 0; slot < sort; ++slot) ++slots[{sort, slot}][translation.slots[slot]];
  }
  CHECK(sentences.size() == 2);
  CHECK_THAT(sentences.rbegin()->second / 60000, WithinAbs(10.0 / 19, 0.01));  // verbs that take an object
  double count = 0;
  for (const auto& [sort, drawn] : sentences) {
    double choices = 1;
    for (std::size_t slot = 0; slot < sort; ++slot) {
      const auto& words = slots[{sort, slot}];
      CAPTURE(sort, slot);
      choices *= static_cast<double>(words.size());
      const bool optional = words.contains("");
      for (const auto& [word, n] : words) {
        const double share = !optional      ? 1.0 / static_cast<double>(words.size())
                             : word.empty() ? 0.5
                                            : 0.5 / static_cast<double>(words.size() - 1);
        CHECK_THAT(n / drawn, WithinAbs(share, 5 * std::sqrt(share / drawn)));
      }
    }
    count += choices;
  }
  CHECK(find_task("translation").distinct_inputs(kTranslation) == count);
  const auto shares = answer_shares(examples);
  const double chance = find_task("translation").chance(kTranslation);
  for (const auto& [token, share] : shares) CHECK(share < chance + 0.003);
  for (const char* word : {"the", "my"}) {
    const auto vocabulary = find_task("translation").tokens(kTranslation);
    const auto token = std::find(vocabulary.begin(), vocabulary.end(), word) - vocabulary.begin();
    CHECK_THAT(shares.at(static_cast<std::int32_t>(token)), WithinAbs(chance, 0.003));
  }
}
