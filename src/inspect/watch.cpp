#include "thimble/inspect/watch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "thimble/core/error.h"
#include "thimble/inspect/label.h"
#include "thimble/inspect/scores.h"
#include "thimble/train/cost.h"
#include "thimble/train/trainer.h"

namespace thimble::inline THIMBLE_PRECISION {

using Json = nlohmann::ordered_json;

HeadWatch make_head_watch(const Config& config);

namespace {

// One look: the scores of every head, from the weights of the passes it sees.
class Look : public Hooks {
 public:
  Look(const Transformer& model, std::int64_t length)
      : model_(model),
        length_(length),
        heads_(static_cast<std::size_t>(model.config().layers * model.config().heads),
               HeadScorer(length, model.config().attention.mask == Mask::causal)),
        weights_(static_cast<std::size_t>(length * length)) {}

  // The sequences of the pass that comes next.
  void begin(std::vector<ScoreTargets> targets) { targets_ = std::move(targets); }

  // weights (B, H, T, T)
  void observe(std::string_view site, const Shape&, ConstMatrixView weights) override {
    for (std::size_t l = 0; l < model_.layers().size(); ++l)
      if (site == model_.layers()[l].self_attn.weights_site) add(static_cast<std::int64_t>(l), weights);
  }

  // Whether all weights were finite.
  bool sound() const { return sound_; }

  Json json() const {
    Json chance = Json::object(), attainable = Json::object(), heads = Json::array();
    for (const HeadScore& score : heads_.front().scores()) {
      if (score.at) continue;
      chance[std::string(score.name)] = known(score, score.chance);
      attainable[std::string(score.name)] = known(score, score.attainable);
    }
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i), per_layer = model_.config().heads;
      Json scores = Json::object();
      for (const HeadScore& score : heads_[i].scores())
        scores[std::string(score.name)] = known(score, score.value);
      heads.push_back({{"layer", number / per_layer}, {"head", number % per_layer}, {"scores", scores}});
    }
    return {{"chance", chance}, {"attainable", attainable}, {"heads", heads}};
  }

 private:
  static Json known(const HeadScore& score, double number) {
    if (score.eligible < kEnoughQueries || !std::isfinite(number)) return nullptr;
    return std::round(1e6 * number) / 1e6;
  }

  void add(std::int64_t layer, ConstMatrixView weights) {
    const std::int64_t heads = model_.config().heads;
    for (std::size_t b = 0; b < targets_.size(); ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t first = (static_cast<std::int64_t>(b) * heads + h) * length_;
        for (std::int64_t i = 0; i < length_; ++i)
          std::copy_n(weights.row(first + i), length_, weights_.begin() + i * length_);
        sound_ = sound_ && std::ranges::all_of(weights_, [](double w) { return std::isfinite(w); });
        if (sound_) heads_[static_cast<std::size_t>(layer * heads + h)].add(targets_[b], weights_);
      }
    }
  }

  const Transformer& model_;
  const std::int64_t length_;  // T
  std::vector<HeadScorer> heads_;
  std::vector<ScoreTargets> targets_;
  std::vector<double> weights_;  // (T, T), of one head and sequence
  bool sound_ = true;
};

class Watch {
 public:
  explicit Watch(const Config& config)
      : dataset_(make_dataset(config)),
        model_(config.model, dataset_.vocabulary(), dataset_.length()),
        special_(special_tokens(config.task)),
        sequences_(std::min(kWatchedSequences, dataset_.size(Split::validation))) {
    require<DataError>(sequences_ > 0, "train.watch_heads: there are no validation sequences to watch");
  }

  Json look(WeightsView weights) {
    std::ranges::copy(std::get<std::span<const Real>>(weights), model_.parameters().values().begin());
    tape_.bind(model_.parameters(), {});
    Look look(model_, dataset_.length());
    double loss = 0;
    std::int64_t labelled = 0;
    const std::int64_t at_once = micro_batch(dataset_.length());
    for (std::int64_t first = 0; first < sequences_; first += at_once) {
      dataset_.fill(Split::validation, first, std::min(at_once, sequences_ - first), batch_);
      look.begin(targets(first));
      tape_.rewind();
      const Var logits = labelled_logits(model_, tape_, batch_, {.hooks = &look});
      loss += static_cast<double>(cross_entropy(logits, batch_.row_labels, {.normalizer = 1}).item());
      labelled += std::ssize(batch_.rows);
    }
    Json said{{"loss", loss / static_cast<double>(std::max<std::int64_t>(1, labelled))}};
    said.update(
        look.sound()
            ? look.json()
            : Json{{"chance", Json::object()}, {"attainable", Json::object()}, {"heads", Json::array()}});
    return said;
  }

 private:
  // Of the batch, whose first sequence is that one.
  std::vector<ScoreTargets> targets(std::int64_t first) {
    const bool causal = model_.config().attention.mask == Mask::causal;
    std::vector<ScoreTargets> found;
    for (std::int64_t b = 0; b < batch_.sequences; ++b) {
      dataset_.example(Split::validation, first + b, example_);
      const auto length = static_cast<std::size_t>(batch_.lengths[static_cast<std::size_t>(b)]);
      const auto tokens =
          std::span(batch_.tokens).subspan(static_cast<std::size_t>(b * batch_.length), length);
      found.emplace_back(tokens, causal, dataset_.links(example_), special_);
    }
    return found;
  }

  Dataset dataset_;
  Transformer model_;
  std::vector<std::int32_t> special_;
  std::int64_t sequences_;
  Tape tape_{Tape::Mode::inference};
  Batch batch_;
  Example example_;
};

}  // namespace

HeadWatch make_head_watch(const Config& config) {
  const auto watch = std::make_shared<Watch>(config);
  return [watch](WeightsView weights) { return watch->look(weights); };
}

}  // namespace thimble::inline THIMBLE_PRECISION
