// Heads that are known to do one thing, because their weights were set so, are scored and named rightly;
// heads with random weights get no name.
#include <string>
#include <vector>

#include "catch.h"
#include "hand_made.h"
#include "thimble/inspect/label.h"
#include "thimble/inspect/scores.h"
#include "thimble/train/trainer.h"

using namespace thimble;

namespace {

// Scores all heads on the weights that a forward pass of one sequence uses.
class Scorers : public Hooks {
 public:
  Scorers(const Transformer& model, const Dataset& dataset) : model_(model), dataset_(dataset) {
    const bool causal = model.config().attention.mask == Mask::causal;
    const ModelConfig& config = model.config();
    heads_.assign(static_cast<std::size_t>(config.layers * config.heads),
                  HeadScorer(dataset.length(), causal));
  }

  void observe(std::string_view site, const Shape& shape, ConstMatrixView weights) override {
    for (std::size_t l = 0; l < model_.layers().size(); ++l) {
      if (site != model_.layers()[l].self_attn.weights_site) continue;
      const std::int64_t cells = shape[2] * shape[3];
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        const Real* first = weights.row(h * shape[2]);
        heads_[l * static_cast<std::size_t>(shape[1]) + static_cast<std::size_t>(h)].add(
            *targets_, std::vector<double>(first, first + cells));
      }
    }
  }

  void run(std::int64_t sequences) {
    Tape tape(Tape::Mode::inference);
    tape.bind(model_.parameters(), {});
    for (std::int64_t i = 0; i < sequences; ++i) {
      Batch batch;
      dataset_.fill(Split::test, i, 1, batch);
      const std::span<const std::int32_t> tokens(batch.tokens);
      targets_.emplace(tokens.first(static_cast<std::size_t>(batch.lengths[0])),
                       model_.config().attention.mask == Mask::causal, dataset_.links(batch.example));
      tape.rewind();
      const Var logits = labelled_logits(model_, tape, batch, {.hooks = this});
      count(logits.value(), batch.row_labels);
    }
  }

  double accuracy() const { return right_ / answers_; }
  std::vector<std::vector<HeadScore>> scores() const {
    std::vector<std::vector<HeadScore>> out;
    for (const HeadScorer& head : heads_) out.push_back(head.scores());
    return out;
  }

 private:
  void count(ConstMatrixView logits, const std::vector<std::int32_t>& labels) {
    for (std::int64_t r = 0; r < logits.rows; ++r) {
      const Real* row = logits.row(r);
      right_ += std::max_element(row, row + logits.cols) - row == labels[static_cast<std::size_t>(r)] ? 1 : 0;
      answers_ += 1;
    }
  }

  const Transformer& model_;
  const Dataset& dataset_;
  std::optional<ScoreTargets> targets_;
  std::vector<HeadScorer> heads_;
  double right_ = 0, answers_ = 0;
};

struct Seen {
  std::vector<std::vector<HeadScore>> heads;  // layer by layer, with at_init
  double accuracy;
};

constexpr std::int64_t kSequences = 60;

template <class SetWeights>
Seen see(const Config& config, const SetWeights& set_weights, std::uint64_t initial_seed) {
  const Dataset dataset = make_dataset(config);
  const auto scorers = [&](const auto& set) {
    Transformer model(config.model, dataset.vocabulary(), dataset.length());
    set(model);
    Scorers out(model, dataset);
    out.run(kSequences);
    return Seen{out.scores(), out.accuracy()};
  };
  Seen seen = scorers(set_weights);
  const Seen initial = scorers([&](Transformer& model) { model.init(initial_seed); });
  for (std::size_t h = 0; h < seen.heads.size(); ++h) set_at_init(seen.heads[h], initial.heads[h]);
  return seen;
}

constexpr ZeroEffect kNeeded = {0.4, 0.3, 0.5, -0.5, -0.6, -0.4};

struct Case {
  std::string name;  // of the label
  std::string score;
  hand_made::HandMade made;
  double accuracy;  // at least, with the head
  std::size_t head = 0;
};

std::vector<Case> cases() {
  return {{"mirror", "mirror", hand_made::mirror(), 1},
          {"mirror", "mirror", hand_made::ignored_mirror(), 0},
          {"previous token", "previous_token", hand_made::previous_token(), 1},
          {"same token", "same_token", hand_made::same_token(), 0.9},
          {"previous token", "previous_token", hand_made::induction(), 0.4},
          {"induction", "induction", hand_made::induction(), 0.4, 2},
          {"position 2", "absolute_position", hand_made::fixed_position(), 1},
          {"uniform", "entropy", hand_made::uniform(), 1}};
}

}  // namespace

TEST_CASE("a head that was made to do one thing is scored and named rightly", "[inspect]") {
  for (const Case& c : cases()) {
    INFO(c.score);
    const Seen seen = see(c.made.config, c.made.set_weights, c.made.config.train.seed);
    CHECK(seen.accuracy >= c.accuracy);
    const HeadScore& score = find_score(seen.heads[c.head], c.score);
    CHECK(score.value >= 0.95 * score.attainable);
    CHECK(score.attainable > 0.9);
    const Label label = label_head(seen.heads[c.head], kNeeded);
    INFO(label.sentence);
    CHECK(label.name == c.name);
    CHECK(label.verdict == Verdict::shown);
    const ZeroEffect none;
    CHECK(label_head(seen.heads[c.head], none).verdict == Verdict::no_effect);
  }
}

TEST_CASE("a model made by hand needs its head", "[inspect]") {
  for (const Case& c : cases()) {
    INFO(c.score);
    const Seen seen = see(
        c.made.config,
        [&](Transformer& model) {
          c.made.set_weights(model);
          for (const EncoderLayer& layer : model.layers())
            std::ranges::fill(model.parameters().values(layer.self_attn.out_proj.weight), Real(0));
        },
        1);
    CHECK(seen.accuracy <= std::max(0.6, c.accuracy - 0.2));
    if (c.accuracy > 0 && c.score != "entropy") CHECK(seen.accuracy < c.accuracy - 0.2);
  }
}

TEST_CASE("random heads get no name, whatever is known of their beginnings", "[inspect]") {
  for (const Case& c : cases()) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Seen seen = see(
          c.made.config, [&](Transformer& model) { model.init(seed); }, seed + 10);
      for (std::vector<HeadScore>& head : seen.heads) {
        const Label label = label_head(head, kNeeded);
        INFO(c.score << ", seed " << seed << ": " << label.sentence);
        CHECK(label.name.empty());
        CHECK(label.verdict == Verdict::no_pattern);
        for (HeadScore& score : head) score.at_init = std::numeric_limits<double>::quiet_NaN();
        CHECK(label_head(head, kNeeded).name.empty());
      }
    }
  }
}
