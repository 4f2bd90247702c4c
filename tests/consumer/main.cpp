// Another project's use of the installed library: a config, one call, a result.
#include <thimble/config/config.h>
#include <thimble/train/train.h>

#include <cstdio>

constexpr const char* kConfig = R"(
task: {name: reverse, symbols: 4, length: 6}
data: {train: 2000, validation: 200, test: 200}
model: {d_model: 16, d_ff: 32}
train: {steps: 300, batch: 32, optimizer: {name: adam, lr: 3e-3}}
)";

class FirstLoss : public thimble::TrainObserver {
 public:
  void on_step(const thimble::StepReport& report) override {
    if (report.step == 1) loss = report.loss;
  }
  double loss = 0;
};

int main() {
  FirstLoss first;
  thimble::TrainOptions options;
  options.observer = &first;
  const thimble::TrainResult result =
      thimble::train(thimble::parse_config(kConfig, "consumer.yaml"), options);
  std::printf("loss %.3f, then %.3f; test accuracy %.2f %%\n", first.loss, result.train.loss,
              100 * result.test->accuracy);
  return result.train.loss < 0.5 * first.loss ? 0 : 1;
}
