// The source of a generated task, whose examples are pure functions of (seed, split, index).
#include <array>

#include "thimble/engine/error.h"
#include "thimble/engine/random.h"
#include "thimble/train/permutation.h"
#include "train/data/layout.h"

namespace thimble {

namespace {

constexpr double kMinInputs = 200;             // with fewer, splits by hash would be too small
constexpr std::uint32_t kMaxAttempts = 10000;  // a tenth of the inputs or more is in each split

class Generated : public Source {
 public:
  Generated(const TaskConfig& config, const DataConfig& data, std::uint64_t seed)
      : Source(config), draws_(seed, Stream::data) {
    checked_task(config);
    tokens_ = task_->tokens(config);
    longest_ = task_->size(config);
    disjoint_ = task_->at != nullptr || distinct_inputs() >= kMinInputs;
    if (task_->at == nullptr || data.train < 1 || static_cast<double>(data.train) >= distinct_inputs())
      return;
    starts_ = {0, data.train, data.train + sizes(data).validation};
    inputs_.emplace(static_cast<std::uint64_t>(distinct_inputs()), Random(seed, Stream::split), 0);
  }

  double chance() const override { return task_->chance(config_); }
  std::optional<double> floor() const override { return task_->floor(config_); }
  double distinct_inputs() const override { return task_->distinct_inputs(config_); }

  DataConfig sizes(DataConfig data) const override {
    if (task_->at == nullptr) return data;
    const auto inputs = static_cast<std::int64_t>(distinct_inputs());
    require<DataError>(data.train >= 1 && data.train < inputs,
                       "task {}: has {} inputs, so data.train must be from 1 to {}, not {}", config_.name,
                       inputs, inputs - 1, data.train);
    const std::int64_t rest = inputs - data.train;
    data.validation = std::min(data.validation, rest / 2);
    data.test = std::min(data.test, rest - data.validation);
    return data;
  }

  void example(Split split, std::int64_t index, Example& out) const override {
    if (inputs_) {
      const auto position = static_cast<std::uint64_t>(starts_[static_cast<std::size_t>(split)] + index);
      return task_->at(config_, static_cast<std::int64_t>((*inputs_)(position)), out);
    }
    for (std::uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
      const std::uint32_t lane = attempt << 2 | static_cast<std::uint32_t>(split);
      SampleRng rng(draws_, static_cast<std::uint64_t>(index), lane);
      task_->sample(config_, rng, out);
      if (!disjoint_ || split_by_hash(out.input) == split) return;
    }
    throw DataError(
        fmt::format("task {}: no {} example in {} attempts; allow more symbols or longer sequences",
                    config_.name, split_name(split), kMaxAttempts));
  }

  bool varies() const override { return task_->vary != nullptr; }
  void vary(SampleRng& rng, Layout, Example& out) const override { task_->vary(config_, rng, out); }

  std::optional<Layout> suitable_layout() const override { return usual_layout(longest_); }
  void check(Layout layout) const override { check_layout(config_.name, *task_, layout, longest_); }

 private:
  Random draws_;
  std::array<std::int64_t, 3> starts_{};  // of the splits, in the list of inputs
  std::optional<Permutation> inputs_;     // the order of listed inputs
};

}  // namespace

std::shared_ptr<const Source> generated_source(const TaskConfig& config, const DataConfig& data,
                                               std::uint64_t seed) {
  require<DataError>(find_task(config.name).open == nullptr,
                     "task {}: its data files are not open; read the config with open_config", config.name);
  return std::make_shared<Generated>(config, data, seed);
}

}  // namespace thimble
