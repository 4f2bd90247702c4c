// Standard errors of losses and accuracies, from the spread between sequences.
#include <algorithm>
#include <cmath>

#include "catch.h"
#include "thimble/train/json.h"
#include "train/config/small_config.h"
#include "train/step/trainer.h"

using namespace thimble;

TEST_CASE("the standard error of a loss is its deviation between samples", "[train]") {
  Config config = small_config();
  config.task.length = 40;  // few sequences at once, so many chunks
  config.data.train = 0;
  config.data.test = 300;
  std::vector<double> losses;
  double error = 0;
  Trainer trainer(config);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    config.train.seed = seed;
    Trainer other(config);
    std::ranges::copy(trainer.model().parameters().values(), other.model().parameters().values().begin());
    const EvalResult report = other.evaluate(Split::test);
    losses.push_back(report.loss);
    error += *report.loss_error / 40;
  }
  double mean = 0, squares = 0;
  for (const double loss : losses) mean += loss / 40;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean) / 39;
  CHECK(error > 0.7 * std::sqrt(squares));
  CHECK(error < 1.4 * std::sqrt(squares));
}

TEST_CASE("standard errors are those of a ratio, from the spread between sequences", "[train]") {
  // Sequences of 1 to 5 labels in chunks of 4; the second implementation is a plain loop over sequences.
  std::vector<EvalSums> chunks;
  std::vector<SequenceResult> all;
  for (std::int64_t n = 1; n <= 12; ++n) {
    if (n % 4 == 1) chunks.emplace_back();
    const std::int64_t labeled = 1 + n * n % 5, correct = n % 3 == 0 ? labeled : n % (labeled + 1);
    const auto x = static_cast<double>(n);
    all.push_back({.loss = std::abs(std::sin(x)) * x, .labeled = labeled, .correct = correct});
    chunks.back().loss += all.back().loss;
    chunks.back().labeled += labeled;
    chunks.back().correct += correct;
    chunks.back().spread.add_draw({static_cast<std::uint64_t>(n), static_cast<double>(labeled),
                                   static_cast<double>(correct), all.back().loss});
    const EvalResult result = mean_of(chunks, n);
    const auto error_of = [&](const auto& part) {
      double sum = 0, labels = 0, squares = 0;
      for (const SequenceResult& s : all) {
        sum += part(s);
        labels += static_cast<double>(s.labeled);
      }
      for (const SequenceResult& s : all)
        squares += std::pow(part(s) - sum / labels * static_cast<double>(s.labeled), 2);
      return std::pair(sum / labels, std::sqrt(squares * x / (x - 1)) / labels);
    };
    const auto [loss, loss_error] = error_of([](const SequenceResult& s) { return s.loss; });
    const auto [accuracy, accuracy_error] =
        error_of([](const SequenceResult& s) { return static_cast<double>(s.correct); });
    CAPTURE(n);
    CHECK_THAT(result.loss, WithinRel(loss, 1e-12));
    CHECK_THAT(result.accuracy, WithinRel(accuracy, 1e-12) || WithinAbs(accuracy, 1e-15));
    CHECK(result.sequences == n);
    CHECK(result.loss_error.has_value() == (n > 1));
    CHECK(result.accuracy_error.has_value() == (n > 1));
    if (n < 2) continue;
    CHECK_THAT(*result.loss_error, WithinRel(loss_error, 1e-9));
    CHECK_THAT(*result.accuracy_error, WithinRel(accuracy_error, 1e-9));
  }
}

TEST_CASE("sequences of one input that follow each other are one draw", "[train]") {
  // 1 to 6 copies of an input, in chunks of 4 and as one sequence each.
  std::vector<EvalSums> chunks(1), merged;
  for (std::uint64_t input = 0; input < 9; ++input) {
    EvalSums& all = merged.emplace_back();
    DrawSums::Draw sum{.number = input};
    for (std::uint64_t copy = 0; copy <= input * input % 6; ++copy) {
      const double correct = static_cast<double>((input + copy) % 3 == 0),
                   loss = std::sin(1.0 + 7.0 * copy + input);
      if (chunks.back().labeled == 8) chunks.emplace_back();
      for (EvalSums* to : {&chunks.back(), &all}) {
        to->labeled += 2;
        to->correct += static_cast<std::int64_t>(correct);
        to->loss += loss;
      }
      chunks.back().spread.add_draw({input, 2, correct, loss});
      sum = {input, sum.labeled + 2, sum.correct + correct, sum.loss + loss};
    }
    all.spread.add_draw(sum);
  }
  const EvalResult actual = mean_of(chunks, 30), expected = mean_of(merged, 30);
  CHECK(actual.distinct == 9);
  CHECK_THAT(*actual.loss_error, WithinRel(*expected.loss_error, 1e-12));
  CHECK_THAT(*actual.accuracy_error, WithinRel(*expected.accuracy_error, 1e-12));
}

TEST_CASE("an interval of right answers alone is that of as many draws", "[train]") {
  EvalResult all{.accuracy = 1, .sequences = 10, .accuracy_error = 0.0, .distinct = 10};
  CHECK_THAT(all.accuracy_margin(), WithinAbs(0.3085, 1e-4));  // Clopper and Pearson, 10 of 10
  all.distinct = 2;
  CHECK_THAT(all.accuracy_margin(), WithinAbs(1 - std::sqrt(0.025), 1e-12));
  all.accuracy_error = 0.01;
  CHECK_THAT(all.accuracy_margin(), WithinAbs(0.0196, 1e-4));
}

TEST_CASE("an evaluation states the labels and the errors of its own sequences", "[train]") {
  Config config = small_config();
  config.task.min_length = 2;
  config.data.test = 40;
  Trainer trainer(config);
  std::vector<SequenceResult> all;  // from evaluations of the first 1, 2, 3, ...
  double labels_before = 0, loss_before = 0;
  for (std::int64_t n = 1; n <= 40; ++n) {
    const EvalResult report = trainer.evaluate(Split::test, n);
    const auto labels = static_cast<double>(report.labels);
    all.push_back({report.loss * labels - loss_before, report.labels - std::llround(labels_before), 0});
    loss_before = report.loss * labels;
    labels_before = labels;
  }
  double squares = 0;
  for (const SequenceResult& s : all)
    squares += std::pow(s.loss - loss_before / labels_before * static_cast<double>(s.labeled), 2);
  const EvalResult report = trainer.evaluate(Split::test);
  CHECK(report.labels > 80);
  CHECK(report.labels < 160);  // lengths differ
  REQUIRE(report.loss_error.has_value());
  CHECK_THAT(*report.loss_error, WithinRel(std::sqrt(squares * 40 / 39) / labels_before, 1e-5));
  CHECK(*trainer.evaluate(Split::test, 2).loss_error > 0);
  const EvalResult one = trainer.evaluate(Split::test, 1);
  CHECK_FALSE(one.loss_error.has_value());
  const Json json = to_json(one);
  CHECK(json["labels"] == one.labels);
  for (const char* key : {"loss_error", "accuracy_error", "no_better_than_chance"}) {
    CAPTURE(key);
    REQUIRE(json.contains(key));
    CHECK(json[key].is_null());
  }
}
