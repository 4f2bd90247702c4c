// A training loop of one's own, with the model, the optimizer, the schedule and the dataset of the library.
#include <thimble/engine/make_model.h>
#include <thimble/engine/ops.h>
#include <thimble/engine/optimizer.h>
#include <thimble/engine/schedule.h>
#include <thimble/train/config.h>
#include <thimble/train/dataset.h>

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace thimble;

namespace {

ModelInput input_of(const Batch& batch) {
  return {.tokens = batch.tokens, .length = batch.length, .lengths = batch.lengths};
}

// Returns the share of labeled positions of the first test sequences whose largest logit is that of the label.
double accuracy(const Model& model, const Dataset& data, std::int64_t sequences) {
  Batch batch;
  data.fill(Split::test, 0, sequences, batch);
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const Var logits = model(tape, input_of(batch), {});
  std::int64_t labeled = 0, correct = 0;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.labels[i] < 0) continue;
    const Real* row = logits.value().row(static_cast<std::int64_t>(i));
    ++labeled;
    correct += std::max_element(row, row + model.vocabulary()) - row == batch.labels[i];
  }
  return static_cast<double>(correct) / static_cast<double>(labeled);
}

}  // namespace

int main() {
  const Config config = parse_config(
      "task: {name: sort, symbols: 8, length: 6}\n"
      "model: {d_model: 32, d_ff: 64, heads: 2}\n"
      "train: {steps: 400, batch: 64, optimizer: {lr: 3e-3}, schedule: {name: cosine, warmup: 20}}\n",
      "loop.cpp");
  const TrainConfig& train = config.train;
  const Dataset data(config.task, config.data, layout_of(config.model), train.seed);
  const auto model = make_model(config.model, {.vocabulary = data.vocabulary(), .length = data.length()});
  model->init(train.seed);

  Optimizer optimizer(train.optimizer, model->parameters());
  std::vector<Real> gradients(model->parameters().size());
  Tape tape;
  Batch batch;
  for (std::int64_t step = 0; step < train.steps; ++step) {
    data.fill_step(step, train.batch, 0, train.batch, batch);
    gradients.assign(gradients.size(), 0);
    tape.rewind();
    tape.bind(model->parameters(), gradients);
    const Var loss = cross_entropy((*model)(tape, input_of(batch), {.training = true}), batch.labels);
    tape.backward(loss);
    optimizer.step(model->parameters().values(), gradients,
                   schedule_factor(train.schedule, train.optimizer.lr, step, train.steps));
    if (step % 100 == 0)
      std::printf("step %3d  loss %.4f\n", static_cast<int>(step), static_cast<double>(loss.item()));
  }
  std::printf("test accuracy %.1f %%\n", 100 * accuracy(*model, data, 500));
}
