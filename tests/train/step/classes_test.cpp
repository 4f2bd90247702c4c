// A classifier of own data has its answers as outputs; how its rows are batched.
#include <cmath>

#include "catch.h"
#include "thimble/engine/error.h"
#include "train/config/small_config.h"
#include "train/data/small_rows.h"
#include "train/step/evaluator.h"
#include "train/step/trainer.h"

using namespace thimble;
using namespace thimble::rows;

namespace {

constexpr double kError = sizeof(Real) == 8 ? 1e-12 : 2e-5;

// Inputs of 1 to 23 words and one of 90, with "ham" or "spam".
std::string messages() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    const int words = i == 77 ? 90 : 1 + i * 7 % 23;
    for (int w = 0; w < words; ++w) text += fmt::format("{}w{}", w > 0 ? " " : "", (i * 31 + w * 17) % 50);
    text += i % 3 == 0 ? "\tspam\n" : "\tham\n";
  }
  return text;
}

// Sources of 1 to 12 letters, with targets of other lengths.
std::string pairs() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    const auto sequence = [&](int length, int step) {
      std::string out;
      for (int w = 0; w < length; ++w)
        out += fmt::format("{}{}", w > 0 ? " " : "", static_cast<char>('a' + (i + w * step) % 9));
      return out;
    };
    text += sequence(i == 5 ? 60 : 1 + i % 12, 2) + "\t" + sequence(i == 9 ? 50 : 1 + i * 5 % 11, 3) + "\n";
  }
  return text;
}

OpenConfig config_of(const SourcePointer& source, ModelKind kind = ModelKind::encoder) {
  OpenConfig config = small_config();
  config.task = source->config();
  config.source = source;
  config.data = {.train = kAll, .validation = kAll, .test = kAll};
  config.model.kind = kind;
  config.model.output.per = kind == ModelKind::encoder ? OutputPer::sequence : OutputPer::next;
  config.train.batch = 24;
  config.train.shards = 4;
  return config;
}

// The loss of a step's batch, summed over labels, one row at a time at full width.
double loss_by_row(const Trainer& trainer, std::int64_t step, std::int64_t batch) {
  const Dataset& data = trainer.dataset();
  double loss = 0, labels = 0;
  for (std::int64_t row = 0; row < batch; ++row) {
    Batch one;
    const std::int64_t indices[] = {data.training_index(step, batch, row)};
    data.fill(Split::train, indices, one);
    Tape tape(Tape::Mode::inference);
    tape.bind(trainer.model().parameters(), {});
    EvalSums sums;
    add_loss(trainer.model()(tape, labeled_input(one), {}), one, 0, sums);
    loss += sums.loss;
    labels += sums.labels();
  }
  return loss / labels;
}

}  // namespace

TEST_CASE("a classifier of own data has one output for each answer", "[train]") {
  const SourcePointer source = table_of(messages());
  OpenConfig config = config_of(source);
  CHECK(model_sizes(config).outputs == 2);
  Trainer trainer(config);
  CHECK(trainer.model().outputs() == 2);
  CHECK(record_of(config).outputs == std::vector<std::string>{"ham", "spam"});
  const Dataset& data = trainer.dataset();
  Batch batch;
  data.fill(Split::train, 0, 40, batch);
  for (std::int64_t i = 0; i < 40; ++i) {
    Example e;
    data.example(Split::train, i, e);
    const std::int32_t label = batch.labels[static_cast<std::size_t>(i)];
    CHECK(data.token_of(label) == e.target[0]);
    CHECK(data.output_of(e.target[0]) == label);
    CHECK(data.names()[static_cast<std::size_t>(e.target[0])] == (label == 0 ? "ham" : "spam"));
  }
  config.model.output.tied = true;  // a logit for each token
  CHECK(model_sizes(config).outputs == 0);
  config.model.output.tied = false;
  config.outputs = Outputs::vocabulary;  // as version 0.3 trained it
  CHECK(Trainer(config).model().outputs() == std::ssize(source->tokens()));
  // Several answers a sequence are of the vocabulary.
  CHECK(table_of(pairs())->answers().empty());
}

TEST_CASE("predictions of a classifier are tokens, and chance is of its answers", "[train]") {
  const SourcePointer source = table_of(messages());
  const OpenConfig config = config_of(source);
  Trainer trainer(config);
  for (int i = 0; i < 3; ++i) trainer.step();
  Evaluator evaluator(config);
  std::vector<Prediction> predictions;
  const EvalResult result = evaluator.evaluate(Split::test, 0, &predictions);
  std::int64_t ham = 0, right = 0;
  for (const Prediction& p : predictions) {
    const std::string& answer = source->tokens()[static_cast<std::size_t>(p.answer[0])];
    CHECK((answer == "ham" || answer == "spam"));
    ham += source->tokens()[static_cast<std::size_t>(p.target[0])] == "ham";
    right += p.right();
  }
  const auto all = static_cast<double>(predictions.size());
  CHECK_THAT(*result.chance, WithinAbs(static_cast<double>(ham) / all, 1e-12));
  CHECK_THAT(result.accuracy, WithinAbs(static_cast<double>(right) / all, 1e-12));
}

TEST_CASE("<unk> is an output where answers may become it", "[train]") {
  const Table table(
      {.main = {"t.tsv", messages() + "w1\trare\n"}, .options = {.vocabulary = VocabularyOf::training}});
  std::vector<std::string> answers;
  for (const std::int32_t id : table.answers())
    answers.push_back(table.tokens()[static_cast<std::size_t>(id)]);
  CHECK(answers == std::vector<std::string>{"<unk>", "ham", "spam"});
}

TEST_CASE("an answer that a trained model has no output for is an error with its line", "[train]") {
  const SourcePointer source = table_of(messages());
  DataRecord record = record_of(config_of(source));
  const Table other({.main = {"t.tsv", messages()}, .test = {{"u.tsv", "w1 w2\tham\nw3\tw4\n"}}}, &record);
  CHECK(other.answers() == source->answers());
  CHECK_NOTHROW(other.require_rows(Split::train));
  CHECK_THROWS_WITH(
      other.require_rows(Split::test),
      StartsWith("u.tsv: 1 problem\nu.tsv:2: answer w4 is none of the 2 that the model was trained "
                 "to give: ham, spam\n"));
  record.outputs.clear();  // of version 0.3
  const Table old({.main = {"t.tsv", messages()}, .test = {{"u.tsv", "w1 w2\tham\nw3\tw4\n"}}}, &record);
  CHECK_NOTHROW(old.require_rows(Split::test));
  CHECK(old.answers().empty());
}

TEST_CASE("the rows of a step are dealt out to shards by length, and each is read once", "[train]") {
  const Dataset data = make_dataset(config_of(table_of(messages())));
  std::vector<std::int64_t> rows, drawn, once;
  for (const std::int64_t step : {0, 2, 9}) {
    data.sorted_rows(step, 23, 4, rows, drawn);
    const auto length = [&](std::size_t i) { return data.row_lengths(rows[i]).total(); };
    std::vector<std::int64_t> tokens;
    for (std::int64_t shard = 0; shard < 4; ++shard) {
      const auto begin = static_cast<std::size_t>(23 * shard / 4),
                 end = static_cast<std::size_t>(23 * (shard + 1) / 4);
      tokens.push_back(0);
      for (std::size_t i = begin; i < end; ++i) {
        tokens.back() += length(i);
        if (i > begin) CHECK(length(i - 1) <= length(i));
      }
    }
    CHECK(std::ranges::max(tokens) - std::ranges::min(tokens) <= 2 * length(rows.size() - 1));
    std::ranges::sort(rows);
    CHECK(std::ranges::adjacent_find(rows) == rows.end());
    data.sorted_rows(step, 23, 1, once, drawn);  // the same rows, whatever the shards
    std::ranges::sort(once);
    CHECK(rows == once);
  }
}

TEST_CASE("rows of which one is over twice as long as another are computed apart", "[train]") {
  for (const auto& [longest, parts] : {std::pair(20, 1), {21, 2}}) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      for (int w = 0; w < (i % 2 == 0 ? 10 : longest); ++w) text += fmt::format("{}w{}", w > 0 ? " " : "", i);
      text += i % 3 == 0 ? "\tspam\n" : "\tham\n";
    }
    OpenConfig config = config_of(table_of(text));
    config.train.batch = 12;  // all of which fit 256 tokens
    config.train.shards = 1;
    Trainer trainer(config);
    trainer.step();
    trainer.start_profile();
    trainer.step();
    const Trainer::StepProfile profile = trainer.profile();
    const auto data = std::ranges::find(profile.phases.spans(), "data", &Profile::Span::name);
    CHECK(data->count == parts);
  }
}

TEST_CASE("losses of own data are those of its rows one at a time, for any threads", "[train]") {
  for (const auto& [source, kind] : {std::pair(table_of(messages()), ModelKind::encoder),
                                     {table_of(pairs()), ModelKind::encoder_decoder},
                                     {table_of(pairs()), ModelKind::recurrent}}) {
    OpenConfig config = config_of(source, kind);
    if (kind == ModelKind::recurrent) config.model.attention.score = Score::additive;
    std::vector<std::string> hashes;
    for (const std::int64_t threads : {1, 3}) {
      config.train.threads = threads;
      Trainer trainer(config);
      for (std::int64_t step = 0; step < 4; ++step) {
        const double expected = loss_by_row(trainer, step, config.train.batch);
        CHECK_THAT(trainer.step().loss, WithinAbs(expected, kError * expected));
      }
      hashes.push_back(trainer.model().parameters().hash());
    }
    CHECK(hashes[0] == hashes[1]);
  }
}

TEST_CASE("an evaluation that pads to a chunk's longest has the bits of full width", "[train]") {
  for (const auto& [source, kind] : {std::pair(table_of(messages()), ModelKind::encoder),
                                     {table_of(pairs()), ModelKind::encoder_decoder}}) {
    Evaluator evaluator(config_of(source, kind));
    const EvalResult fitted = evaluator.evaluate(Split::test);
    evaluator.select(Split::test, fitted.sequences);
    const EvalResult whole = evaluator.run();
    CHECK(fitted.loss == whole.loss);
    CHECK(fitted.accuracy == whole.accuracy);
  }
}
