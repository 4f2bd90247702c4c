// Hand-made transformers, with a head that does exactly one thing that the task needs.
//
// A feature is a pair of channels, +1 and -1 where it is present and 0 elsewhere, so vectors have mean 0.
// Every position has the same number of features, so a norm multiplies all by the same factor, which its
// weight compensates. Features are, in this order: the token (V), the position (T), the previous token (V),
// and the target (V), which is all that the output reads. Layers are pre-norm, feed-forward nets zero; head 0
// works, head 1 is idle.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "engine/model/transformer.h"
#include "thimble/engine/error.h"
#include "train/config/small_config.h"
#include "train/data/table/table.h"
#include "train/step/evaluator.h"

namespace hand_made {

using namespace thimble;

struct HandMade {
  OpenConfig config;
  std::function<void(Model&)> set_weights;  // of a model of that config, whose parameters are zero
};

// Sets the weights of a model feature by feature.
class Maker {
 public:
  explicit Maker(Model& model)
      : model_(model),
        channels_(model.config().d_model),
        head_(channels_ / model.config().heads),
        vocabulary_(model.vocabulary()),
        time_(dynamic_cast<Transformer&>(model).max_length()) {
    for (std::int64_t t = 0; t < vocabulary_; ++t) mark("token_embedding.weight", t, token(t));
    for (std::int64_t p = 0; p < time_; ++p) mark("position_embedding.weight", p, position(p));
    std::ranges::fill(values("encoder.norm.weight"), Real(1));
    for (std::int64_t t = 0; t < vocabulary_; ++t) set("output.weight", t, 2 * answer(t), 10);
  }

  std::int64_t vocabulary() const { return vocabulary_; }
  std::int64_t time() const { return time_; }
  std::int64_t token(std::int64_t t) const { return t; }
  std::int64_t position(std::int64_t p) const { return vocabulary_ + p; }
  std::int64_t before(std::int64_t t) const { return vocabulary_ + time_ + t; }
  std::int64_t answer(std::int64_t t) const { return 2 * vocabulary_ + time_ + t; }
  static std::int64_t features(std::int64_t vocabulary, std::int64_t time) { return 3 * vocabulary + time; }

  // Sets the number of features in the input of a layer's attention, so that each reads as 1.
  void start_layer(std::int64_t layer, int present) {
    layer_ = "encoder.layers." + std::to_string(layer);
    const double scale = std::sqrt(2.0 * present / static_cast<double>(channels_));
    std::ranges::fill(values(layer_ + ".norm1.weight"), static_cast<Real>(scale));
  }
  // Sets the head that the functions below make.
  void use_head(std::int64_t number) { number_ = number; }
  // Adds `strength` to the attention score of a query with feature `query` for a key with feature `key`.
  // Terms in the same slot give sums over queries times sums over keys.
  void match(std::int64_t slot, std::int64_t query, std::int64_t key, double strength) {
    ask(slot, query, strength);
    offer(slot, key);
  }
  void ask(std::int64_t slot, std::int64_t query, double strength) {
    set(layer_ + ".self_attn.in_proj_weight", head_ * number_ + slot, 2 * query,
        strength * std::sqrt(static_cast<double>(head_)));
  }
  void offer(std::int64_t slot, std::int64_t key) {
    set(layer_ + ".self_attn.in_proj_weight", channels_ + head_ * number_ + slot, 2 * key, 1);
  }
  // Makes the head write the attended token into these features.
  void copy_token(const std::function<std::int64_t(std::int64_t)>& to, double weight = 1) {
    for (std::int64_t t = 0; t < vocabulary_; ++t) {
      const std::int64_t column = head_ * number_ + t;
      set(layer_ + ".self_attn.in_proj_weight", 2 * channels_ + column, 2 * token(t), 1);
      set(layer_ + ".self_attn.out_proj.weight", 2 * to(t), column, weight);
      set(layer_ + ".self_attn.out_proj.weight", 2 * to(t) + 1, column, -weight);
    }
  }
  // Makes the value of a token zero.
  void forget_token(std::int64_t t) {
    set(layer_ + ".self_attn.in_proj_weight", 2 * channels_ + head_ * number_ + t, 2 * token(t), 0);
  }
  void copy_token_to_answer(double weight = 1) {
    copy_token([this](std::int64_t t) { return answer(t); }, weight);
  }
  // Sets the logit of a token whose answer feature is 1 after the final norm.
  void set_confidence(double logit) {
    for (std::int64_t t = 0; t < vocabulary_; ++t) set("output.weight", t, 2 * answer(t), logit);
  }

 private:
  std::span<Real> values(const std::string& name) {
    const auto& entries = model_.parameters().entries();
    const auto found = std::ranges::find(entries, name, &ParameterStore::Entry::name);
    require<Error>(found != entries.end(), "hand-made model: no parameter {}", name);
    return model_.parameters().values(Parameter{static_cast<int>(found - entries.begin())});
  }

  void set(const std::string& name, std::int64_t row, std::int64_t column, double value) {
    values(name)[static_cast<std::size_t>(row * channels_ + column)] = static_cast<Real>(value);
  }
  void mark(const std::string& name, std::int64_t row, std::int64_t feature) {
    set(name, row, 2 * feature, 1);
    set(name, row, 2 * feature + 1, -1);
  }

  Model& model_;
  std::int64_t channels_, head_, vocabulary_, time_;
  std::int64_t number_ = 0;  // of the head
  std::string layer_;
};

inline constexpr double kSharp = 30;  // a score that leaves e^-30 to the other keys

inline Config hand_made_config(const TaskConfig& task, std::int64_t vocabulary, std::int64_t time) {
  Config config = small_config();
  config.task = task;
  config.data = {.train = 100, .validation = 20, .test = 60};
  config.model.heads = 2;
  config.model.d_model = 2 * Maker::features(vocabulary, time);
  config.model.norm = NormOrder::pre;
  config.model.positions = Positions::learned;
  config.model.output.hidden = 0;
  return config;
}

// Gives the weights to the model of an evaluator.
inline void give(const HandMade& made, Evaluator& evaluator) {
  std::ranges::fill(evaluator.model().parameters().values(), Real{0});
  made.set_weights(evaluator.model());
}

// Target i is token T - 1 - i.
inline HandMade mirror() {
  return {hand_made_config({.name = "reverse", .symbols = 8, .length = 8}, 8, 8), [](Model& model) {
            Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t p = 0; p < make.time(); ++p)
              make.match(p, make.position(make.time() - 1 - p), make.position(p), kSharp);
            make.copy_token_to_answer();
          }};
}

// A mirror head whose output is not used.
inline HandMade ignored_mirror() {
  return {mirror().config, [](Model& model) {
            mirror().set_weights(model);
            const MultiHeadAttention& attention = *model.attention(model.attention_layers()[0]);
            std::ranges::fill(model.parameters().values(attention.out_proj_weights[0]), Real(0));
          }};
}

// Target i is token i - 1, target 0 the last token.
inline HandMade previous_token() {
  return {hand_made_config({.name = "shift", .symbols = 8, .length = 8}, 8, 8), [](Model& model) {
            Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t p = 0; p < make.time(); ++p)
              make.match(p, make.position((p + 1) % make.time()), make.position(p), kSharp);
            make.copy_token_to_answer();
          }};
}

// Targets are the tokens themselves, which the head reads at other occurrences.
inline HandMade same_token() {
  return {hand_made_config({.name = "copy", .symbols = 4, .length = 12}, 4, 12), [](Model& model) {
            Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t t = 0; t < make.vocabulary(); ++t)
              make.match(t, make.token(t), make.token(t), kSharp);
            for (std::int64_t p = 0; p < make.time(); ++p)
              make.match(make.vocabulary() + p, make.position(p), make.position(p), -2 * kSharp);
            make.copy_token_to_answer();
          }};
}

// Targets are the tokens that followed an earlier occurrence: layer 0 copies the previous token, layer 1
// attends to the keys where it equals the query's token. Key 0 has no previous token; there layer 0 copies
// its own.
inline HandMade induction() {
  const TaskConfig task = {.name = "induction", .symbols = 16, .length = 8, .min_length = 5};
  HandMade made{hand_made_config(task, 16, 15), [](Model& model) {
                  Maker make(model);
                  make.start_layer(0, 2);
                  for (std::int64_t p = 0; p + 1 < make.time(); ++p)
                    make.match(p, make.position(p + 1), make.position(p), kSharp);
                  make.copy_token([&](std::int64_t t) { return make.before(t); });
                  make.start_layer(1, 3);
                  const std::int64_t last_slot = make.vocabulary();
                  for (std::int64_t t = 0; t < make.vocabulary(); ++t) {
                    make.match(t, make.token(t), make.before(t), kSharp);
                    make.ask(last_slot, make.token(t), -2 * kSharp);
                  }
                  make.offer(last_slot, make.position(0));
                  make.copy_token_to_answer();
                }};
  made.config.model.layers = 2;
  made.config.model.attention.mask = Mask::causal;
  return made;
}

// The first position, which predicts the target, averages all tokens: the majority.
inline HandMade uniform() {
  HandMade made{hand_made_config({.name = "majority", .symbols = 2, .length = 9}, 2, 9), [](Model& model) {
                  Maker make(model);
                  make.start_layer(0, 2);
                  make.copy_token_to_answer();
                }};
  made.config.model.output.per = OutputPer::sequence;
  made.config.model.output.pooling = Pooling::first;
  made.config.data.test = 120;  // of each sequence one query counts
  return made;
}

// Every target is the token at position 2, of 5 tokens of 4 kinds.
inline HandMade fixed_position() {
  constexpr int kRows = 1024;
  std::string rows;
  for (int row = 0; row < kRows; ++row) {
    std::string input;
    for (int p = 0, rest = row; p < 5; ++p, rest /= 4)
      input += std::string(p > 0 ? " " : "") + "abcd"[rest % 4];
    rows += input + "\t";
    for (int p = 0; p < 5; ++p) rows += std::string(p > 0 ? " " : "") + input[4];
    rows += "\n";
  }
  DataTexts texts;
  texts.main = {"rows.tsv", rows};
  const OpenConfig config(hand_made_config({.name = "file"}, 4, 5), std::make_shared<const Table>(texts));
  return {config, [](Model& model) {
            Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t t = 0; t < make.vocabulary(); ++t) make.ask(0, make.token(t), kSharp);
            make.offer(0, make.position(2));
            make.copy_token_to_answer();
          }};
}

}  // namespace hand_made
