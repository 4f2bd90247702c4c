// Models whose heads are known, through all of inspect(): every pattern is found, none is found that is not
// there. Weights are set by hand, see hand_made.h, or random.
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"
#include "train/data/small_rows.h"

using namespace thimble;
using hand_made::HandMade, hand_made::kSharp, hand_made::Maker;

namespace {

constexpr std::int64_t kRead = 120;  // test sequences

InspectReport report_on(OpenConfig config, const std::function<void(Model&)>& set_weights) {
  config.data.test = kRead;
  return inspect_weights(config, set_weights, {.sequences = kRead, .examples = 0});
}

using Key = std::function<std::int64_t(std::int64_t query)>;

// The sequences of a generated task, or of a file.
struct Sequences {
  rows::SourcePointer source;

  Sequences(const TaskConfig& task) : source(generated_source(task)) {}
  Sequences(rows::SourcePointer of_file) : source(std::move(of_file)) {}
  OpenConfig opened(Config config) const {
    return {std::move(config), source->files().empty() ? nullptr : source};
  }
};

HandMade hand_made_model(const Sequences& task, bool causal, std::int64_t layers,
                         const std::function<void(Maker&)>& set) {
  const Dataset data(task.source, {.train = 10}, Layout::position, 1);
  const Config config = hand_made::hand_made_config(data.config(), data.vocabulary(), data.length());
  HandMade made{task.opened(config), [set](Model& model) {
                  Maker make(model);
                  make.start_layer(0, 2);
                  set(make);
                  make.copy_token_to_answer();
                }};
  if (causal) made.config.model.attention.mask = Mask::causal;
  made.config.model.layers = layers;
  return made;
}

// Adds the share of attention that the key of a position gets, next to a key with share 1. Uses slots from
// `slot` on.
void attend(Maker& make, std::int64_t slot, const Key& key, double share = 1) {
  for (std::int64_t q = 0; q < make.time(); ++q) {
    if (key(q) < 0 || key(q) >= make.time()) continue;
    make.ask(slot + q, make.position(q), kSharp + std::log(share));
    make.offer(slot + q, make.position(key(q)));
  }
}

HandMade positional(const Sequences& task, bool causal, const Key& key, const Key& other = {},
                    double share = 0) {
  return hand_made_model(task, causal, 1, [=](Maker& make) {
    attend(make, 0, key);
    if (other) attend(make, make.time(), other, share);
  });
}

Key offset(std::int64_t k) {
  return [k](std::int64_t q) { return q + k; };
}
Key position(std::int64_t k) {
  return [k](std::int64_t) { return k; };
}
Key mirrored(std::int64_t time) {
  return [time](std::int64_t q) { return time - 1 - q; };
}

// Attends to all keys with these tokens alike.
HandMade attends_to_tokens(const Sequences& task, bool causal, const std::set<std::int64_t>& tokens) {
  return hand_made_model(task, causal, 1, [tokens](Maker& make) {
    for (std::int64_t t = 0; t < make.vocabulary(); ++t) make.ask(0, make.token(t), kSharp);
    for (const std::int64_t t : tokens) make.offer(0, make.token(t));
  });
}

// Attends to the query's token at other positions, with `earlier` only at those before it.
HandMade attends_to_equal(const Sequences& task, bool causal, bool earlier) {
  return hand_made_model(task, causal, 1, [=](Maker& make) {
    for (std::int64_t t = 0; t < make.vocabulary(); ++t) make.match(t, make.token(t), make.token(t), kSharp);
    for (std::int64_t q = 0; q < make.time(); ++q) {
      make.ask(make.vocabulary() + q, make.position(q), -2 * kSharp);
      for (std::int64_t k = q; k < (earlier ? make.time() : q + 1); ++k)
        make.offer(make.vocabulary() + q, make.position(k));
    }
  });
}

// The circuit of two layers: layer 0 copies the previous token, layer 1 attends to the keys where it equals
// the query's, and by a share to another key.
HandMade induction_circuit(const Sequences& task, const Key& other = {}, double share = 0) {
  return hand_made_model(task, true, 2, [=](Maker& make) {
    attend(make, 0, [](std::int64_t q) { return std::max<std::int64_t>(0, q - 1); });
    make.copy_token([&](std::int64_t t) { return make.before(t); });
    make.start_layer(1, 3);
    const std::int64_t slots = make.vocabulary();
    for (std::int64_t t = 0; t < slots; ++t) {
      make.match(t, make.token(t), make.before(t), kSharp);
      make.ask(slots, make.token(t), -2 * kSharp);
    }
    make.offer(slots, make.position(0));
    if (other) attend(make, slots + 1, other, share);
  });
}

// Layer 0 reads the adjective, layer 1 attends to the nouns that it suits, or to both.
HandMade coreference(bool right) {
  const TaskConfig task{.name = "coreference"};
  const auto names = find_task("coreference").tokens(task);
  const auto token = [names](std::string_view name) {
    return std::ranges::find(names, name) - names.begin();
  };
  const auto each = [](std::int64_t first, std::int64_t count, const auto& f) {
    for (std::int64_t t = first; t < first + count; ++t) f(t);
  };
  const std::int64_t animals = token("animal"), places = token("street"), tired = token("tired"),
                     wide = token("wide");
  return hand_made_model(task, false, 2, [=](Maker& make) {
    for (std::int64_t t = 0; t < make.vocabulary(); ++t) make.ask(0, make.token(t), kSharp);
    each(tired, 16, [&](std::int64_t t) { make.offer(0, make.token(t)); });
    make.copy_token([&](std::int64_t t) { return make.before(t); });
    make.start_layer(1, 3);
    each(animals, 12, [&](std::int64_t t) { make.offer(0, make.token(t)); });
    each(places, 12, [&](std::int64_t t) { make.offer(1, make.token(t)); });
    each(tired, 8, [&](std::int64_t t) {
      make.ask(0, make.before(t), kSharp);
      if (!right) make.ask(1, make.before(t), kSharp);
    });
    each(wide, 8, [&](std::int64_t t) {
      make.ask(1, make.before(t), kSharp);
      if (!right) make.ask(0, make.before(t), kSharp);
    });
  });
}

// Returns a task of rows whose tokens are row[p] of the kinds "a", "b", ..., with themselves as targets.
rows::SourcePointer file_task(
    std::int64_t length,
    const std::function<int(SampleRng&, std::int64_t p, const std::vector<int>&)>& draw) {
  std::string text_of_rows;
  for (std::uint64_t r = 0; r < 2000; ++r) {
    SampleRng rng(Random(3, Stream::data), r, 0);
    std::vector<int> row;
    std::string text;
    for (std::int64_t p = 0; p < length; ++p) {
      row.push_back(draw(rng, p, row));
      text += (p > 0 ? " " : "") + std::string(1, static_cast<char>('a' + row.back()));
    }
    text_of_rows += text + "\t" + text + "\n";
  }
  return rows::table_of(text_of_rows);
}

struct KnownHead {
  std::string what;
  std::string name;  // of the pattern; "": none
  HandMade made;
  std::size_t head = 0;
};

std::vector<KnownHead> known_heads() {
  const TaskConfig reverse{.name = "reverse", .symbols = 8, .length = 8},
      copy{.name = "copy", .symbols = 8, .length = 8}, sort{.name = "sort", .symbols = 8, .length = 8},
      shift{.name = "shift", .symbols = 8, .length = 8},
      histogram{.name = "histogram", .symbols = 5, .length = 12},
      one_length{.name = "induction", .symbols = 16, .length = 6},
      two_lengths{.name = "induction", .symbols = 16, .length = 7, .min_length = 6},
      lengths{.name = "induction", .symbols = 16, .length = 8, .min_length = 5},
      recall{.name = "associative_recall", .symbols = 16, .length = 16, .pairs = 4},
      dyck{.name = "dyck_match", .symbols = 3, .length = 12};
  // Three random tokens three times; a first token that is always the same; mostly one token.
  const rows::SourcePointer rounds =
      file_task(9, [](SampleRng& rng, std::int64_t p, const std::vector<int>& row) {
        return p < 3 ? static_cast<int>(rng.below(8)) : row[static_cast<std::size_t>(p - 3)];
      });
  const rows::SourcePointer opening =
      file_task(8, [](SampleRng& rng, std::int64_t p, const std::vector<int>&) {
        return p == 0 ? 0 : 1 + static_cast<int>(rng.below(7));
      });
  const rows::SourcePointer mostly_a =
      file_task(10, [](SampleRng& rng, std::int64_t, const std::vector<int>&) {
        return rng.below(5) < 3 ? 0 : 1 + static_cast<int>(rng.below(4));
      });
  std::vector<KnownHead> out = {
      {"previous", "previous token", positional(shift, false, offset(-1))},
      {"previous, causal", "previous token", positional(lengths, true, offset(-1))},
      {"next", "next token", positional(reverse, false, offset(1))},
      {"next, of sorting", "next token", positional(sort, false, offset(1))},
      {"self", "this position", positional(copy, false, offset(0))},
      {"self, of counting", "this position", positional(histogram, false, offset(0))},
      {"mirror", "mirror", positional(reverse, false, mirrored(8))},
      {"mirror, where it does not help", "mirror", positional(copy, false, mirrored(8))},
      {"first position", "position 0", positional(copy, false, position(0))},
      {"first position, causal", "position 0", positional(lengths, true, position(0))},
      {"fixed position", "position 3", positional(sort, false, position(3))},
      {"first value of recall", "position 1", positional(recall, false, position(1))},
      {"offset", "offset -3", positional(shift, false, offset(-3))},
      {"offset ahead", "offset +2", positional(reverse, false, offset(2))},
      {"distance in place of induction", "offset -5", positional(one_length, true, offset(-5))},
      {"distance in place of duplicate tokens", "offset -3", positional(rounds, true, offset(-3))},
      {"distance in place of duplicate tokens, of one length", "offset -6",
       positional(one_length, true, offset(-6))},
      {"distance in place of same tokens", "offset +3", positional(rounds, false, offset(3))},
      {"distance of 80 %, content of 20 %", "offset -5",
       induction_circuit(
           one_length, [](std::int64_t q) { return q < 5 ? q : q - 5; }, 4),
       2},
      {"two distances of two lengths", "offset -6|offset -5",
       positional(two_lengths, true, offset(-6), offset(-5), 1)},
      {"induction", "induction", induction_circuit(lengths), 2},
      {"induction, its first layer", "previous token", induction_circuit(lengths), 0},
      {"induction of one length", "induction", induction_circuit(one_length), 2},
      {"induction of rounds", "induction", induction_circuit(rounds), 2},
      {"recall", "induction", induction_circuit(recall), 2},
      {"duplicate tokens", "duplicate token", attends_to_equal(lengths, true, true)},
      {"duplicate tokens at one distance", "duplicate token", attends_to_equal(rounds, true, true)},
      {"duplicate tokens without a mask", "duplicate token", attends_to_equal(copy, false, true)},
      {"same tokens", "same token", attends_to_equal(histogram, false, false)},
      {"same tokens at fixed distances", "same token", attends_to_equal(rounds, false, false)},
      {"right noun", "task target (referent)", coreference(true), 2},
      // Of `it`, the only query that counts in the last block, the second noun is always two back: half of the attention.
      {"any noun", "offset -2", coreference(false), 2},
      {"all values of recall", "", attends_to_tokens(recall, false, {8, 9, 10, 11, 12, 13, 14, 15})},
      {"all opening brackets", "", attends_to_tokens(dyck, false, {0, 1, 2})},
      {"a token that is first", "", attends_to_tokens(opening, false, {0})},
      {"a frequent token", "", attends_to_tokens(mostly_a, false, {0})},
      {"tokens by position", "", hand_made_model(sort, false, 1, [](Maker& make) {
         for (std::int64_t q = 0; q < make.time(); ++q)
           make.match(q, make.position(q), make.token(q), kSharp);
       })}};
  for (const double leak : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6}) {
    out.push_back({fmt::format("previous, {} first", leak), "previous token",
                   positional(shift, false, offset(-1), position(0), leak)});
    out.push_back({fmt::format("induction, {} distance", leak), "induction",
                   induction_circuit(lengths, offset(-7), leak), 2});
  }
  return out;
}

// The heads to read: all of them in float, which models are trained in, and some in double.
constexpr std::size_t kEvery = sizeof(Real) == sizeof(float) ? 1 : 4;

}  // namespace

TEST_CASE("the pattern of every hand-made head is found, and no other", "[inspect][slow]") {
  const std::vector<KnownHead> all = known_heads();
  CHECK(all.size() >= 30);
  for (std::size_t i = 0; i < all.size(); i += kEvery) {
    const KnownHead& known = all[i];
    const InspectReport report = report_on(known.made.config, known.made.set_weights);
    const FoundPattern found = find_pattern(report.heads[known.head].scores);
    INFO(known.what << ": " << found.name << ", " << found.numbers);
    const bool one_of = known.name.find('|') != std::string::npos && !found.name.empty() &&
                        known.name.find(found.name) != std::string::npos;
    CHECK((found.name == known.name || one_of));
  }
}

TEST_CASE("random heads of every task have no pattern", "[inspect][slow]") {
  std::size_t heads = 0;
  for (const std::string_view name : task_names()) {
    const rows::SourcePointer source = rows::usual(name);
    OpenConfig config = Sequences(source).opened(small_config());
    config.task = source->config();
    config.data = {.train = 50, .validation = 20, .test = kRead};
    config.model.d_model = 24;
    config.model.heads = 4;
    config.model.layers = 2;
    const Task& task = checked_task(config.task);
    const Layout layout = usual_layout(source->longest());
    config.model.output.per = layout == Layout::position   ? OutputPer::position
                              : layout == Layout::sequence ? OutputPer::sequence
                                                           : OutputPer::next;
    if (layout == Layout::next) config.model.kind = ModelKind::encoder_decoder;
    if (task.causal) config.model.attention.mask = Mask::causal;
    for (std::uint64_t seed = kEvery > 1 ? 1 : 0; seed < 2; ++seed) {
      // Untrained, or other weights than those that the report compares with. Of two tokens, every other
      // random head prefers the equal one: no accident, so parity is left out.
      if (seed == 1 && name == "parity") continue;
      config.train.seed = 10;
      const InspectReport report = report_on(config, [&](Model& model) { model.init(10 + seed); });
      for (const HeadReport& head : report.heads) {
        const FoundPattern found = find_pattern(head.scores);
        INFO(name << ", seed " << seed << ": " << found.name << ", " << found.numbers);
        CHECK(found.name.empty());
        ++heads;
      }
    }
  }
  CHECK(heads >= (kEvery > 1 ? 90 : 200));
}
