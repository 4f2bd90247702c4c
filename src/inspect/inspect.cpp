#include "thimble/inspect/inspect.h"

#include "thimble/inspect/subject.h"

namespace thimble::inline THIMBLE_PRECISION {

InspectReport run_inspection(const ModelSource& source, std::int64_t sequences);

namespace {

// Adds up the attention weights of every head over the batches of a pass.
class WeightsWatcher : public ChunkHooks {
 public:
  WeightsWatcher(const Transformer& model, const Dataset& dataset)
      : model_(model), dataset_(dataset), length_(dataset.length()) {
    for (std::int64_t l = 0; l < model.config().layers; ++l) {
      for (std::int64_t h = 0; h < model.config().heads; ++h) {
        heads_.push_back({.layer = l, .head = h, .mean_weights = {}, .mirror = {}, .task_target = {}});
        heads_.back().mean_weights.resize(static_cast<std::size_t>(length_ * length_));
      }
    }
  }

  void begin(const Chunk& chunk) override {
    batch_ = &chunk.batch;
    links_.clear();
    for (std::int64_t i = 0; i < batch_->sequences; ++i) {
      dataset_.example(Split::test, chunk.first + i, example_);
      links_.push_back(dataset_.links(example_));
    }
  }

  void observe(std::string_view site, const Shape& shape, ConstMatrixView weights) override {
    for (std::size_t l = 0; l < model_.layers().size(); ++l) {
      if (site == model_.layers()[l].self_attn.weights_site)
        add(l * static_cast<std::size_t>(shape[1]), shape, weights);
    }
  }

  std::vector<HeadReport> finish() {
    for (HeadReport& h : heads_) {
      for (HeadScore* score : {&h.mirror, &h.task_target}) {
        const auto eligible = static_cast<double>(std::max<std::int64_t>(1, score->eligible));
        score->value /= eligible;
        score->chance /= eligible;
      }
      for (double& w : h.mean_weights) w /= static_cast<double>(std::max<std::int64_t>(1, full_length_));
    }
    return heads_;
  }

  void end() override { full_length_ += std::ranges::count(batch_->lengths, length_); }

 private:
  void add(std::size_t first_head, const Shape& shape, ConstMatrixView weights) {
    const kernels::AttentionMask mask{model_.config().attention.mask == Mask::causal, batch_->lengths};
    for (std::int64_t row = 0; row < weights.rows; ++row) {
      const std::int64_t query = row % shape[2], head = row / shape[2] % shape[1],
                         sequence = row / shape[2] / shape[1];
      const std::int64_t length = batch_->lengths[static_cast<std::size_t>(sequence)];
      if (query >= length) continue;
      HeadReport& report = heads_[first_head + static_cast<std::size_t>(head)];
      const Real* w = weights.row(row);
      const std::int64_t target = length - 1 - query, visible = mask.visible(sequence, query, shape[3]);
      report.mirror.eligible += 1;
      report.mirror.value += static_cast<double>(w[target]);
      report.mirror.chance += target < visible ? 1 / static_cast<double>(visible) : 0;
      bool asked = false;
      for (const Dataset::Link& link : links_[static_cast<std::size_t>(sequence)]) {
        if (link.query != query) continue;
        asked = true;
        report.task_target.value += static_cast<double>(w[link.key]);
        report.task_target.chance += link.key < visible ? 1 / static_cast<double>(visible) : 0;
      }
      report.task_target.eligible += asked ? 1 : 0;
      if (length != length_) continue;
      for (std::int64_t j = 0; j < length_; ++j) {
        report.mean_weights[static_cast<std::size_t>(query * length_ + j)] += static_cast<double>(w[j]);
      }
    }
  }

  const Transformer& model_;
  const Dataset& dataset_;
  std::int64_t length_;
  Example example_;
  std::vector<std::vector<Dataset::Link>> links_;  // of each sequence
  const Batch* batch_ = nullptr;
  std::vector<HeadReport> heads_;
  std::int64_t full_length_ = 0;  // sequences without padding
};

}  // namespace

InspectReport run_inspection(const ModelSource& source, std::int64_t sequences) {
  Subject subject(source, Split::test, sequences);
  WeightsWatcher watcher(subject.model(), subject.dataset());
  subject.watch(watcher);
  return {.length = subject.dataset().length(), .sequences = subject.sequences(), .heads = watcher.finish()};
}

}  // namespace thimble::inline THIMBLE_PRECISION
