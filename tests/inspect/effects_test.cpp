// Ablation, importance and patching, against plain passes over one sequence at a time.
#include "thimble/inspect/effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "catch.h"
#include "thimble/core/error.h"
#include "thimble/inspect/measure_effects.h"
#include "thimble/train/trainer.h"
#include "train/small_config.h"

using namespace thimble;

namespace {

constexpr double kTolerance = sizeof(Real) == 8 ? 1e-10 : 2e-5;

// A model after some steps, with biases that are not 0.
struct Trained {
  explicit Trained(Config config, std::int64_t sequences = 60, int steps = 30)
      : trainer(config), subject(config, Split::test, sequences) {
    for (int i = 0; i < steps; ++i) trainer.step();
    for (const auto& entry : parameters().entries()) {
      if (!entry.name.ends_with("bias")) continue;
      for (std::size_t i = 0; i < entry.size(); ++i)
        parameters().values()[entry.offset + i] += static_cast<Real>(0.1 * std::cos(static_cast<double>(i)));
    }
    give();
  }
  ParameterStore& parameters() { return trainer.model().parameters(); }
  // To the subject what the trainer has.
  void give() { std::ranges::copy(parameters().values(), subject.model().parameters().values().begin()); }
  // Zeroes what a head adds to the residual stream: its columns of the output projection.
  void silence(ParameterStore& store, HeadPlace place) const {
    const auto& attention = trainer.model().layers()[static_cast<std::size_t>(place.layer)].self_attn;
    const std::int64_t c = trainer.model().config().d_model, width = c / attention.heads;
    const std::span<Real> weight = store.values(attention.out_proj.weight);
    for (std::int64_t row = 0; row < c; ++row)
      std::fill_n(weight.data() + row * c + place.head * width, width, Real{0});
  }
  std::vector<HeadPlace> places() const {
    std::vector<HeadPlace> all;
    for (std::int64_t l = 0; l < trainer.model().config().layers; ++l)
      for (std::int64_t h = 0; h < trainer.model().config().heads; ++h) all.push_back({l, h});
    return all;
  }

  Trainer trainer;
  Subject subject;
};

Config sequence_config() {  // one answer for each sequence
  Config config = small_config();
  config.task = {.name = "parity", .length = 8};
  config.model.layers = 2;
  config.model.output.per = OutputPer::sequence;
  return config;
}

// Scales, or replaces by `rows` (T, C), the columns of a head in the pass over one sequence.
struct Plain : Hooks {
  bool replace(std::string_view site, const Shape&, MatrixView value) override {
    if (site != changed) return false;
    const std::int64_t width = value.cols / heads;
    for (std::int64_t t = 0; t < value.rows; ++t) {
      for (std::int64_t c = head * width; c < (head + 1) * width; ++c) {
        Real& x = value.row(t)[c];
        x = rows.empty() ? factor * x : rows[static_cast<std::size_t>(t * value.cols + c)];
      }
    }
    return true;
  }
  void observe(std::string_view site, const Shape&, ConstMatrixView value) override {
    if (site.ends_with("head_output")) seen.emplace_back(value.data, value.data + value.elements());
  }
  std::string changed;
  std::int64_t head = 0, heads = 1;
  Real factor = 1;
  std::vector<Real> rows;
  std::vector<std::vector<Real>> seen;  // by layer, (T, C)
};

struct Result {
  double loss = 0, labelled = 0, correct = 0;
  std::vector<double> logits;
  Batch batch;
};

Result plain_pass(const Trained& trained, std::int64_t sequence, Plain& hooks) {
  Result result;
  trained.trainer.dataset().fill(Split::test, sequence, 1, result.batch);
  const Batch& batch = result.batch;
  Tape tape(Tape::Mode::inference);
  tape.bind(trained.trainer.model().parameters(), {});
  hooks.seen.clear();
  const MatrixView z =
      trained.trainer.model()(tape, batch.tokens, batch.length, batch.lengths, {.hooks = &hooks}).value();
  result.logits.assign(z.data, z.data + z.elements());
  for (std::int64_t i = 0; i < z.rows; ++i) {
    const std::int32_t label = batch.labels[static_cast<std::size_t>(i)];
    if (label == kIgnore) continue;
    double sum = 0;
    for (std::int64_t j = 0; j < z.cols; ++j) sum += std::exp(double(z.row(i)[j]) - double(z.row(i)[label]));
    result.loss += std::log(sum);
    result.labelled += 1;
    result.correct += std::max_element(z.row(i), z.row(i) + z.cols) - z.row(i) == label;
  }
  return result;
}

Plain change(const Trained& trained, HeadPlace place) {
  Plain hooks;
  hooks.changed = "encoder.layers." + std::to_string(place.layer) + ".self_attn.head_output";
  hooks.head = place.head;
  hooks.heads = trained.trainer.model().config().heads;
  return hooks;
}

// Head outputs of every sequence, [sequence][layer], and the lengths.
struct Observed {
  explicit Observed(const Trained& trained) {
    for (std::int64_t i = 0; i < trained.subject.sequences(); ++i) {
      Plain hooks;
      lengths.push_back(plain_pass(trained, i, hooks).batch.lengths[0]);
      outputs.push_back(hooks.seen);
    }
  }
  std::vector<std::vector<std::vector<Real>>> outputs;
  std::vector<std::int32_t> lengths;
};

// The change when each sequence has rows(sequence) in place of the head's output.
template <class Rows>
Effect plain_effect(const Trained& trained, HeadPlace place, const Rows& rows) {
  Effect effect;
  double labelled = 0;
  for (std::int64_t i = 0; i < trained.subject.sequences(); ++i) {
    Plain untouched, changed = change(trained, place);
    changed.rows = rows(static_cast<std::size_t>(i));
    const Result before = plain_pass(trained, i, untouched), after = plain_pass(trained, i, changed);
    effect.loss_change += after.loss - before.loss;
    effect.accuracy_change += after.correct - before.correct;
    labelled += before.labelled;
  }
  effect.loss_change /= labelled;
  effect.accuracy_change /= labelled;
  return effect;
}

void expect_same(const Effect& measured, const Effect& plain) {
  CHECK_THAT(measured.loss_change, WithinAbs(plain.loss_change, kTolerance));
  CHECK_THAT(measured.accuracy_change, WithinAbs(plain.accuracy_change, 1e-12));
}

void expect_true_ablations(Trained& trained) {
  const EffectsReport report = measure_effects(trained.subject);
  const Observed observed(trained);
  const std::vector<std::int64_t> partner = partners(observed.lengths, trained.subject.config().train.seed);
  const std::vector<HeadPlace> places = trained.places();
  REQUIRE(report.heads.size() == places.size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto layer = static_cast<std::size_t>(places[k].layer);
    CHECK(report.heads[k].layer == places[k].layer);
    CHECK(report.heads[k].head == places[k].head);
    const std::size_t size = observed.outputs[0][layer].size();
    std::vector<Real> mean(size);
    for (std::size_t j = 0; j < size; ++j) {
      double sum = 0, count = 0;
      const auto position =
          static_cast<std::int32_t>(j / static_cast<std::size_t>(trained.subject.model().config().d_model));
      for (std::size_t i = 0; i < observed.outputs.size(); ++i) {
        if (position >= observed.lengths[i]) continue;
        sum += double(observed.outputs[i][layer][j]);
        ++count;
      }
      mean[j] = static_cast<Real>(sum / std::max(1.0, count));
    }
    const HeadEffects& head = report.heads[k];
    expect_same(head.zero, plain_effect(trained, places[k], [&](auto) { return std::vector<Real>(size); }));
    expect_same(head.mean, plain_effect(trained, places[k], [&](auto) { return mean; }));
    expect_same(head.resample, plain_effect(trained, places[k], [&](std::size_t i) {
                  return observed.outputs[static_cast<std::size_t>(partner[i])][layer];
                }));
    CHECK(std::abs(head.zero.loss_change) > 1e-4);  // there was something to measure
    CHECK(head.zero.loss_change != head.mean.loss_change);
    CHECK(head.mean.loss_change != head.resample.loss_change);
  }
}

std::string text(const EffectsReport& report) {
  nlohmann::ordered_json json{to_json(report.baseline)};
  for (const HeadEffects& h : report.heads) {
    json.push_back(to_json(h));
    json.push_back(to_json(h.importance));
  }
  for (const RemovalStep& s : report.cumulative_ablation) json.push_back(to_json(s));
  return json.dump();
}

void expect_bits_of_evaluate(Config config, std::int64_t sequences) {
  Trained trained(config, sequences);
  const SplitReport truth = trained.trainer.evaluate(Split::test, sequences);
  const Outcomes outcomes = trained.subject.run();
  CHECK(outcomes.total.loss == truth.loss);
  CHECK(outcomes.total.accuracy == truth.accuracy);
  CHECK(outcomes.total.sequence_accuracy == truth.sequence_accuracy);
  CHECK(outcomes.total.sequences == truth.sequences);
  double loss = 0, labelled = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    Plain hooks;
    const Result plain = plain_pass(trained, i, hooks);
    const Outcome& outcome = outcomes.sequences[static_cast<std::size_t>(i)];
    CHECK_THAT(outcome.loss, WithinRel(plain.loss, 1e-5) || WithinAbs(plain.loss, 1e-5));
    CHECK(static_cast<double>(outcome.labelled) == plain.labelled);
    CHECK(static_cast<double>(outcome.correct) == plain.correct);
    loss += outcome.loss;
    labelled += plain.labelled;
  }
  CHECK_THAT(loss / labelled, WithinRel(truth.loss, 1e-5));
}

}  // namespace

TEST_CASE("the baseline has the bits of evaluate, and every sequence its own outcome", "[inspect]") {
  expect_bits_of_evaluate(small_config(), 60);
  expect_bits_of_evaluate(sequence_config(), 37);
  Config config = rich_config();
  config.data.test = 200;
  expect_bits_of_evaluate(config, 170);  // several chunks, the last one smaller
  config.train.threads = 3;
  expect_bits_of_evaluate(config, 170);
}

TEST_CASE("ablations replace what a head hands to the output projection", "[inspect]") {
  Trained small(small_config());
  expect_true_ablations(small);
  Config config = rich_config();  // sequences of different lengths, a causal mask
  config.data.test = 90;
  Trained rich(config, 90);
  expect_true_ablations(rich);
  Trained whole(sequence_config());
  expect_true_ablations(whole);
}

TEST_CASE("zero ablation equals zeroing the head's columns of the output projection", "[inspect]") {
  for (const Config& config : {small_config(), rich_config()}) {
    Trained trained(config);
    const EffectsReport report = measure_effects(trained.subject);
    const Outcomes before = trained.subject.run();
    for (std::size_t k = 0; k < report.heads.size(); ++k) {
      trained.give();
      trained.silence(trained.subject.model().parameters(), trained.places()[k]);
      const Outcomes after = trained.subject.run();
      CHECK_THAT(report.heads[k].zero.loss_change, WithinAbs(after.total.loss - before.total.loss, 1e-6));
      CHECK_THAT(report.heads[k].zero.accuracy_change,
                 WithinAbs(after.total.accuracy - before.total.accuracy, 1e-12));
    }
  }
}

TEST_CASE("an intervention leaves no trace", "[inspect]") {
  Trained trained(rich_config());
  const std::string weights = trained.subject.model().parameters().hash();
  const Outcomes before = trained.subject.run();
  const std::string first = text(measure_effects(trained.subject));
  patching(trained.subject, 0, partners(Observed(trained).lengths, 1)[0]);
  const Outcomes after = trained.subject.run();
  CHECK(after.total.loss == before.total.loss);
  CHECK(after.total.accuracy == before.total.accuracy);
  for (std::size_t i = 0; i < before.sequences.size(); ++i)
    CHECK(after.sequences[i].loss == before.sequences[i].loss);
  CHECK(trained.subject.model().parameters().hash() == weights);
  CHECK(text(measure_effects(trained.subject)) == first);
}

TEST_CASE("effects do not depend on the number of threads", "[inspect]") {
  Config config = rich_config();
  config.data.test = 300;
  std::vector<std::string> reports;
  for (const std::int64_t threads : {1, 2, 5}) {
    config.train.threads = threads;
    Trained trained(config, 300, 5);
    reports.push_back(text(measure_effects(trained.subject)));
  }
  CHECK(reports[1] == reports[0]);
  CHECK(reports[2] == reports[0]);
}

TEST_CASE("a head that says the same of every input is missed only when it is silenced", "[inspect]") {
  Trained trained(small_config());
  const auto& attention = trained.trainer.model().layers()[0].self_attn;
  const std::span<Real> weight = trained.parameters().values(attention.in_proj_weight);
  std::fill(weight.begin() + 2 * 16 * 16 + 8 * 16, weight.end(), Real{0});  // values of head 1: its bias
  trained.give();
  const HeadEffects head = measure_effects(trained.subject).heads[1];
  CHECK(std::abs(head.zero.loss_change) > 1e-4);
  for (const Effect& effect : {head.mean, head.resample}) {
    CHECK_THAT(effect.loss_change, WithinAbs(0, 1e-6));
    CHECK(effect.accuracy_change == 0);
  }
}

TEST_CASE("a head that nobody listens to has no effect and no importance, and is removed first",
          "[inspect]") {
  Trained trained(rich_config());
  trained.silence(trained.parameters(), {1, 1});
  trained.give();
  const EffectsReport report = measure_effects(trained.subject);
  const HeadEffects& head = report.heads[3];
  for (const Effect& effect : {head.zero, head.mean, head.resample}) {
    CHECK(effect.loss_change == 0);
    CHECK(effect.interval.contains(0));
    CHECK(effect.accuracy_change == 0);
    CHECK(effect.accuracy_interval.contains(0));
  }
  CHECK(head.importance.raw == 0);
  CHECK_THAT(report.heads[2].importance.normalised, WithinAbs(1, 1e-12));
  const RemovalStep& first = report.cumulative_ablation[1];
  CHECK(first.layer == 1);
  CHECK(first.head == 1);
  CHECK(first.loss == report.baseline.loss);
}

TEST_CASE("importance is the loss's derivative by a gate on the head, its size averaged", "[inspect]") {
  const double step = sizeof(Real) == 8 ? 1e-5 : 1e-2;
  Config config = rich_config();
  config.data.test = 90;
  Trained trained(config, 90);
  const EffectsReport report = measure_effects(trained.subject);
  std::vector<double> squares(2);
  for (const HeadEffects& head : report.heads) {
    Plain more = change(trained, {head.layer, head.head}), less = more;
    more.factor = static_cast<Real>(1 + step);
    less.factor = static_cast<Real>(1 - step);
    double sum = 0;
    for (std::int64_t i = 0; i < 90; ++i) {
      const double slope = plain_pass(trained, i, more).loss - plain_pass(trained, i, less).loss;
      sum += std::abs(slope) / (2 * step);
    }
    CHECK_THAT(head.importance.raw, WithinRel(sum / 90, sizeof(Real) == 8 ? 1e-6 : 1e-2));
    squares[static_cast<std::size_t>(head.layer)] += head.importance.raw * head.importance.raw;
  }
  for (const HeadEffects& head : report.heads) {
    const double norm = std::sqrt(squares[static_cast<std::size_t>(head.layer)]);
    CHECK_THAT(head.importance.normalised, WithinRel(head.importance.raw / norm, 1e-12));
  }
}

TEST_CASE("heads are removed one after the other, the least important first", "[inspect]") {
  Trained trained(rich_config());
  const EffectsReport report = measure_effects(trained.subject);
  REQUIRE(report.cumulative_ablation.size() == 5);
  CHECK(report.cumulative_ablation[0].loss == report.baseline.loss);
  CHECK(report.cumulative_ablation[0].accuracy == report.baseline.accuracy);
  double last = 0;
  for (std::size_t k = 1; k < 5; ++k) {
    const RemovalStep& step = report.cumulative_ablation[k];
    CHECK(step.removed == static_cast<std::int64_t>(k));
    const double importance =
        report.heads[static_cast<std::size_t>(step.layer * 2 + step.head)].importance.normalised;
    CHECK(importance >= last);
    last = importance;
    trained.silence(trained.subject.model().parameters(), {step.layer, step.head});
    const Baseline now = trained.subject.run().total;
    CHECK_THAT(step.loss, WithinAbs(now.loss, 1e-6));
    CHECK_THAT(step.accuracy, WithinAbs(now.accuracy, 1e-12));
  }
  CHECK(report.cumulative_ablation[4].loss != report.cumulative_ablation[3].loss);
}

TEST_CASE("heads of equal importance are removed in order", "[inspect]") {
  Trained trained(rich_config());
  for (const HeadPlace& place : trained.places()) trained.silence(trained.parameters(), place);
  trained.give();
  const EffectsReport report = measure_effects(trained.subject);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(report.heads[k].importance.normalised == 0);
    CHECK(report.cumulative_ablation[k + 1].layer * 2 + report.cumulative_ablation[k + 1].head ==
          static_cast<std::int64_t>(k));
  }
}

TEST_CASE("partners have the same length and are somebody else", "[inspect]") {
  std::vector<std::int32_t> lengths(200);
  for (std::size_t i = 0; i < 200; ++i) lengths[i] = static_cast<std::int32_t>(3 + i % 7 % 3);
  lengths[50] = 9;
  const std::vector<std::int64_t> partner = partners(lengths, 4);
  std::vector<std::int64_t> sorted = partner, all(200);
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  for (std::size_t i = 0; i < 200; ++i) {
    CHECK(lengths[static_cast<std::size_t>(partner[i])] == lengths[i]);
    CHECK((partner[i] == static_cast<std::int64_t>(i)) == (i == 50));
  }
  CHECK(partners(lengths, 4) == partner);
  CHECK(partners(lengths, 5) != partner);
}

TEST_CASE("sequences without a partner are counted, and keep their values", "[inspect]") {
  Trained trained(small_config(), 1);
  const EffectsReport report = measure_effects(trained.subject);
  CHECK(report.unpaired == 1);
  CHECK(report.heads[0].resample.loss_change == 0);
  CHECK(report.heads[0].zero.loss_change != 0);
  Trained two(small_config(), 2);
  CHECK(measure_effects(two.subject).unpaired == 0);
}

TEST_CASE("the interval of a mean is what its spread says", "[inspect]") {
  const Random random(3, Stream::gradcheck);
  constexpr std::size_t n = 400;
  std::vector<double> values, wide, ones(n, 1.0), zeros(n), counts, twice;
  for (std::size_t i = 0; i < n; ++i) {
    values.push_back(5 + 2 * random.normal(i));
    counts.push_back(1 + static_cast<double>(i % 3));
    twice.push_back(2 * counts.back());
  }
  const double mean = std::reduce(values.begin(), values.end()) / n;
  const std::vector<Interval> of = bootstrap({values, zeros}, ones, 7);
  CHECK_THAT(of[0].low, WithinAbs(mean - 1.96 * 2 / 20, 0.03));
  CHECK_THAT(of[0].high, WithinAbs(mean + 1.96 * 2 / 20, 0.03));
  CHECK(of[0].contains(mean));
  CHECK_FALSE(of[0].contains(mean + 0.4));
  CHECK_FALSE(of[0].contains(mean - 0.4));
  CHECK(of[1].low == 0);
  CHECK(of[1].high == 0);
  const std::vector<Interval> again = bootstrap({values}, ones, 7), other = bootstrap({values}, ones, 8);
  CHECK(again[0].low == of[0].low);
  CHECK(other[0].low != of[0].low);
  // A ratio: sequences bring their labels along.
  const Interval ratio = bootstrap({twice}, counts, 7)[0];
  CHECK_THAT(ratio.low, WithinRel(2, 1e-12));
  CHECK_THAT(ratio.high, WithinRel(2, 1e-12));
  CHECK_THROWS_AS(bootstrap({{1, 2}}, std::vector<double>{1}, 1), ShapeError);
  CHECK_THROWS_AS(bootstrap({}, {}, 1), ShapeError);
}

TEST_CASE("intervals belong to the differences between sequences", "[inspect]") {
  Trained trained(small_config());
  const EffectsReport report = measure_effects(trained.subject);
  const Outcomes before = trained.subject.run();
  trained.silence(trained.subject.model().parameters(), {0, 1});
  const Outcomes after = trained.subject.run();
  std::vector<double> losses, corrects, labelled;
  for (std::size_t i = 0; i < 60; ++i) {
    losses.push_back(after.sequences[i].loss - before.sequences[i].loss);
    corrects.push_back(static_cast<double>(after.sequences[i].correct - before.sequences[i].correct));
    labelled.push_back(static_cast<double>(before.sequences[i].labelled));
  }
  const auto intervals = bootstrap({losses, corrects}, labelled, trained.subject.config().train.seed);
  const Effect& zero = report.heads[1].zero;
  CHECK_THAT(zero.interval.low, WithinAbs(intervals[0].low, 1e-6));
  CHECK_THAT(zero.interval.high, WithinAbs(intervals[0].high, 1e-6));
  CHECK_THAT(zero.accuracy_interval.low, WithinAbs(intervals[1].low, 1e-12));
  CHECK_THAT(zero.accuracy_interval.high, WithinAbs(intervals[1].high, 1e-12));
  CHECK(zero.interval.contains(zero.loss_change));
  CHECK(zero.interval.low < zero.interval.high);
}

TEST_CASE("patching says how much of the source's answer a head brings along", "[inspect]") {
  for (const Config& config : {small_config(), rich_config(), sequence_config()}) {
    Trained trained(config);
    trained.silence(trained.parameters(), {0, 1});
    trained.give();
    Plain none;
    const Result base = plain_pass(trained, 0, none);
    std::int64_t source_index = 1;
    Result source = plain_pass(trained, 1, none);
    while (source.batch.lengths != base.batch.lengths || source.batch.labels == base.batch.labels)
      source = plain_pass(trained, ++source_index, none);
    const std::vector<std::vector<Real>> outputs = none.seen;
    const auto difference = [&](const Result& result) {
      double sum = 0;
      const std::size_t v = result.logits.size() / base.batch.labels.size();
      for (std::size_t i = 0; i < base.batch.labels.size(); ++i) {
        const std::int32_t from = base.batch.labels[i], to = source.batch.labels[i];
        if (from != to)
          sum += result.logits[i * v + static_cast<std::size_t>(to)] -
                 result.logits[i * v + static_cast<std::size_t>(from)];
      }
      return sum;
    };
    const PatchingReport report = patching(trained.subject, 0, source_index);
    REQUIRE(report.heads.size() == trained.places().size());
    for (const PatchingReport::Head& head : report.heads) {
      Plain hooks = change(trained, {head.layer, head.head});
      hooks.rows = outputs[static_cast<std::size_t>(head.layer)];
      const double expected = (difference(plain_pass(trained, 0, hooks)) - difference(base)) /
                              (difference(source) - difference(base));
      CHECK_THAT(head.effect, WithinAbs(expected, 1e-3 * kTolerance / 2e-5));
    }
    CHECK(report.heads[1].effect == 0);
    CHECK(report.heads[0].effect != 0);
    CHECK(static_cast<std::int32_t>(report.base.size()) == base.batch.lengths[0]);
    CHECK(report.source != report.base);
  }
}

TEST_CASE("patching refuses inputs that cannot be compared", "[inspect]") {
  Trained trained(rich_config());
  const std::vector<std::int32_t> lengths = Observed(trained).lengths;
  const auto longer = std::ranges::find_if(lengths, [&](auto n) { return n != lengths[0]; });
  CHECK_THROWS_AS(patching(trained.subject, 0, longer - lengths.begin()), DataError);
  CHECK_THROWS_AS(patching(trained.subject, 0, 0), DataError);  // the same labels
  CHECK_THROWS_AS(patching(trained.subject, 0, 60), ShapeError);
  CHECK_THROWS_AS(patching(trained.subject, -1, 0), ShapeError);
  std::ranges::fill(trained.subject.model().parameters().values(), Real{0});
  CHECK_THROWS_AS(patching(trained.subject, 0, partners(lengths, 1)[0]), DataError);  // the same logits
}

TEST_CASE("progress is told after every pass, up to the whole", "[inspect]") {
  Trained trained(rich_config(), 20, 1);
  std::vector<double> shares;
  measure_effects(trained.subject, [&](double share) { shares.push_back(share); });
  CHECK(shares.size() == 2 + 2 * (1 + 4 * 2));
  CHECK(std::ranges::is_sorted(shares));
  CHECK(shares.back() == 1);
}

TEST_CASE("without a sequence, or with a loss that is no number, nothing is measured", "[inspect]") {
  CHECK_THROWS_AS(Subject(small_config(), Split::test, 0), DataError);
  Config config = small_config();
  config.data.test = 0;
  CHECK_THROWS_AS(Subject(config, Split::test, 10), DataError);
  Trained trained(small_config());
  trained.subject.model().parameters().values()[0] = std::numeric_limits<Real>::quiet_NaN();
  CHECK_THROWS_AS(measure_effects(trained.subject), NumericError);
}

TEST_CASE("effects as JSON have the names of their fields", "[inspect]") {
  const Effect effect{
      .loss_change = 1, .accuracy_change = 2, .interval = {3, 4}, .accuracy_interval = {5, 6}};
  CHECK(to_json(effect).dump() ==
        R"({"loss_change":1.0,"accuracy_change":2.0,"interval":[3.0,4.0],"accuracy_interval":[5.0,6.0]})");
  HeadEffects head;
  head.mean = effect;
  CHECK(to_json(head).size() == 3);
  CHECK(to_json(head)["mean"] == to_json(effect));
  CHECK(to_json(Importance{1, 2}).dump() == R"({"raw":1.0,"normalised":2.0})");
  CHECK(to_json(RemovalStep{.removed = 0, .loss = 1, .accuracy = 2}).dump() ==
        R"({"removed":0,"layer":null,"head":null,"loss":1.0,"accuracy":2.0})");
  CHECK(to_json(RemovalStep{1, 0, 2, 1, 2})["head"] == 2);
  CHECK(to_json(Baseline{1, 2, 3, 4}).dump() ==
        R"({"loss":1.0,"accuracy":2.0,"sequence_accuracy":3.0,"sequences":4})");
  CHECK(to_json(PatchingReport{{"a"}, {"b"}, {{1, 2, 0.5}}}).dump() ==
        R"({"base":["a"],"source":["b"],"heads":[{"layer":1,"head":2,"effect":0.5}]})");
}
