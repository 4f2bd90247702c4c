// Compares the tables of docs/concepts.md with the results of the ops and of plain loops, both computed from the
// inputs that the page gives.
#include "catch.h"
#include "engine/ops/concepts_page_loops.h"
#include "engine/ops/page.h"
#include "fixtures_compare.h"
#include "source_directory.h"
#include "thimble/engine/attention.h"
#include "thimble/engine/random.h"
#include "thimble/train/file.h"

using namespace thimble;
using namespace thimble::tests;

namespace {

constexpr std::int64_t kModel = 512, kHeads = 8;  // Vaswani et al. 2017
const std::set<std::string> kGiven{"cat.words",      "cat.projections", "same.words",
                                   "dog.memory",     "dog.query",       "dog.parameters",
                                   "cross.visitors", "cross.films",     "cross.projections"};

std::string page_text() { return read_file(source_directory() + "/docs/concepts.md"); }

std::vector<double> doubles(std::span<const Real> values) { return {values.begin(), values.end()}; }
std::vector<double> values_of(Var x) { return doubles(elements(x.value())); }

Tensor memory_tensor(const Page& page, std::int64_t first, std::int64_t count) {
  const auto columns = memory_columns(page, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  return {{1, 6, count}, std::vector<Real>(columns.begin(), columns.end())};
}

struct Attended {
  std::vector<double> weights, output;
};
Attended attend(Var q, Var k, Var v, std::optional<Real> scale = {}) {
  Capture capture;
  AttentionOptions options;
  options.scale = scale;
  options.hooks = &capture;
  const Var output = attention(q, k, v, options);
  return {doubles(capture.value().values()), values_of(output)};
}

// Returns (1, T, C) as (T, C).
Var flat(Var x) { return x.tape().constant(Tensor({x.shape()[1], x.shape()[2]}, elements(x.value()))); }

Results cat_by_ops(const Page& page) {
  Tape tape;
  const Var x = tape.constant(page.tensor("cat.words", {1, 6, 2}));
  const auto project = [&](std::size_t i) {
    return linear(x, tape.constant(page.tensor("cat.projections", {2, 2}, 4 * i)));
  };
  const Var q = project(0), k = project(1), v = project(2);
  const Var scores = linear(flat(q), flat(k));
  const double root = std::sqrt(2);
  const Attended attended = attend(q, k, v);
  return {{"cat.projected", beside({values_of(q), values_of(k), values_of(v)}, 6)},
          {"cat.scores", values_of(scores)},
          {"cat.scale", {2, root}},
          {"cat.scaled", values_of(scale(scores, static_cast<Real>(1 / root)))},
          {"cat.weights", attended.weights},
          {"cat.output", attended.output}};
}

Results same_by_ops(const Page& page) {
  Tape tape;
  const Var x = tape.constant(page.tensor("same.words", {1, 6, 2}));
  const Attended attended = attend(x, x, x);
  const Var scores = tape.constant(page.tensor("same.softmax", {1, 6}));
  return {{"same.weights", attended.weights},
          {"same.output", attended.output},
          {"same.softmax", below({values_of(scores), values_of(softmax(scores))})}};
}

Results dog_by_ops(const Page& page) {
  Tape tape;
  const Var keys = tape.constant(memory_tensor(page, 0, 3)),
            values = tape.constant(memory_tensor(page, 3, 2));
  const Var rows = flat(keys), query = tape.constant(page.tensor("dog.query", {1, 3}));
  const Var dot = linear(query, rows);
  const Var scaled = scale(dot, static_cast<Real>(1 / std::sqrt(3)));
  const Var general = linear(matmul(query, tape.constant(page.tensor("dog.parameters", {3, 3}))), rows);
  const Var queries = select_rows(query, std::vector<std::int32_t>(6, 0));
  const Var additive =
      linear(tape.constant(page.tensor("dog.parameters", {1, 3}, 9)), tanh(add(rows, scale(queries, -1))));

  const Attended attended = attend(tape.constant(page.tensor("dog.query", {1, 1, 3})), keys, values, Real(1));
  std::vector<std::vector<double>> scores, weights;
  for (const Var kind : {dot, scaled, general, additive}) {
    scores.push_back(values_of(kind));
    weights.push_back(values_of(softmax(kind)));
  }
  return {{"dog.alignment", beside({scores[0], attended.weights}, 6)},
          {"dog.context", attended.output},
          {"dog.scores", beside(scores, 6)},
          {"dog.alignments", beside(weights, 6)}};
}

Results cross_by_ops(const Page& page) {
  Tape tape;
  const auto given = [&](const char* block, Shape shape, std::size_t first = 0) {
    return tape.constant(page.tensor(block, shape, first));
  };
  const Var visitors = given("cross.visitors", {1, 2, 4}), films = given("cross.films", {1, 3, 6});
  const Var wq = given("cross.projections", {5, 4}), wk = given("cross.projections", {5, 6}, 20),
            wv = given("cross.projections", {2, 6}, 50);
  const Var q = linear(visitors, wq), k = linear(films, wk), v = linear(films, wv);
  const Var scores = linear(flat(q), flat(k)), output = attention(q, k, v, {});
  const Attended attended = attend(q, k, v);

  std::vector<double> shapes;
  for (const Var x : {visitors, wq, q, films, wk, k, wv, v, scores, output}) {
    shapes.push_back(static_cast<double>(x.shape()[x.shape().rank() - 2]));
    shapes.push_back(static_cast<double>(x.shape().last()));
  }
  return {{"cross.shapes", shapes},
          {"cross.projected", below({values_of(q), values_of(k), values_of(v)})},
          {"cross.scale", {5, std::sqrt(5)}},
          {"cross.scores", values_of(scores)},
          {"cross.weights", attended.weights},
          {"cross.output", attended.output}};
}

// The derivative of each weight with respect to its own score.
std::vector<double> own_derivatives(Tape& tape, const Tensor& scores) {
  std::vector<double> diagonal;
  for (std::size_t i = 0; i < 3; ++i) {
    const Var x = tape.variable(scores);
    Tensor seed({1, 3});
    seed.values()[i] = 1;
    tape.backward(softmax(x), seed.matrix());
    diagonal.push_back(static_cast<double>(x.grad().data[i]));
  }
  return diagonal;
}

Results heads_by_ops() {
  const double d_key = static_cast<double>(kModel) / kHeads, root = std::sqrt(d_key);
  ParameterStore eight, one;
  const MultiHeadAttention module(eight, "attention", kModel, kHeads);
  const MultiHeadAttention whole(one, "attention", kModel, 1);
  std::vector<double> parameters;
  for (const ParameterStore::Entry& entry : eight.entries()) {
    const double columns = entry.shape.rank() == 2 ? static_cast<double>(entry.shape[1]) : 1;
    parameters.insert(parameters.end(),
                      {static_cast<double>(entry.shape[0]), columns, static_cast<double>(entry.size())});
  }
  parameters.push_back(static_cast<double>(eight.count()));
  parameters.push_back(static_cast<double>(one.count()));

  Tape tape;
  const auto real = static_cast<Real>(root);
  const Tensor scores({1, 3}, {real, 0, -real});
  const Var divided = scale(tape.constant(scores), 1 / real);
  const Tensor small({1, 3}, elements(divided.value()));
  return {{"heads.sizes", {kModel, kHeads, d_key, root}},
          {"heads.parameters", parameters},
          {"heads.softmax", below({doubles(scores.values()), values_of(softmax(tape.constant(scores))),
                                   own_derivatives(tape, scores), doubles(small.values()),
                                   values_of(softmax(divided)), own_derivatives(tape, small)})}};
}

Results by_ops(const Page& page, Results all) {
  for (const auto& section : {cat_by_ops, same_by_ops, dog_by_ops, cross_by_ops}) all.merge(section(page));
  return all;
}

}  // namespace

TEST_CASE("the tables of docs/concepts.md are what the ops and plain loops compute", "[ops][docs]") {
  const Page page(page_text());
  const Results ops = by_ops(page, heads_by_ops()), loops = by_loops(page);
  CHECK(page.problems(ops, kGiven) == std::vector<std::string>{});
  CHECK(page.problems(loops, kGiven) == std::vector<std::string>{});
  for (const auto& [name, values] : loops) {
    const auto count = static_cast<std::int64_t>(values.size());
    compare(name, {count}, ops.at(name), values);
  }
}

TEST_CASE("any wrong digit in a table of docs/concepts.md is found", "[ops][docs][slow]") {
  const std::string text = page_text();
  const Page page(text);
  const Results heads = heads_by_ops();
  std::vector<Printed> all;
  for (const auto& [name, numbers] : page.blocks()) all.insert(all.end(), numbers.begin(), numbers.end());
  REQUIRE(all.size() > 300);
  REQUIRE(page.problems(by_ops(page, heads), kGiven).empty());
  for (const Printed& number : all) {
    REQUIRE(text.compare(number.at, number.text.size(), number.text) == 0);
    for (std::size_t i = number.at; i < number.at + number.text.size(); ++i) {
      if (text[i] == '-' || text[i] == '.') continue;
      std::string wrong = text;
      wrong[i] = text[i] == '9' ? '0' : static_cast<char>(text[i] + 1);
      const Page other(wrong);
      if (!other.problems(by_ops(other, heads), kGiven).empty()) continue;
      FAIL_CHECK("line " << number.line << ": " << number.text << " may as well be written with "
                         << wrong[i]);
    }
  }
}

TEST_CASE("the cat sat on the mat, by the module: weights as captured, and output", "[ops][nn][docs]") {
  const Page page(page_text());
  ParameterStore store;
  const MultiHeadAttention module(store, "module", 2, 1);
  std::ranges::copy(page.tensor("cat.projections", {6, 2}).values(),
                    store.values(module.in_proj_weight).begin());
  std::ranges::copy(std::initializer_list<Real>{1, 0, 0, 1},
                    store.values(module.out_proj_weights[0]).begin());
  Capture capture;
  ForwardOptions options;
  options.hooks = &capture;
  Tape tape;
  tape.bind(store, {});
  const Var output = module(tape.constant(page.tensor("cat.words", {1, 6, 2})), {}, options);
  const Results expected = cat_by_loops(page);
  compare("weights", {6, 6}, capture.value().values(), expected.at("cat.weights"));
  compare("output", {6, 2}, elements(output.value()), expected.at("cat.output"));
}

TEST_CASE("products of 64 independent standard normal numbers add up to 8 or so", "[ops][docs]") {
  const Random random(1, Stream::init);
  constexpr std::int64_t kRows = 4000, kDepth = kModel / kHeads;
  double squares = 0;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    double score = 0;
    for (std::uint32_t c = 0; c < kDepth; ++c) score += random.normal(row, c, 0) * random.normal(row, c, 1);
    squares += score * score;
  }
  CHECK_THAT(std::sqrt(squares / kRows), WithinRel(8.0, 0.03));
}
