#include "config/suggest.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "thimble/core/suggest.h"

namespace thimble::config {
namespace {

struct OtherName {
  std::string_view name, path;  // of the key that means the same here
};

constexpr OtherName kOtherNames[] = {
    {"batch_size", "train.batch"},
    {"train_batch_size", "train.batch"},
    {"per_device_train_batch_size", "train.batch"},
    {"max_steps", "train.steps"},
    {"num_steps", "train.steps"},
    {"max_iters", "train.steps"},
    {"learning_rate", "train.optimizer.lr"},
    {"max_grad_norm", "train.clip_norm"},
    {"grad_clip", "train.clip_norm"},
    {"gradient_clip_val", "train.clip_norm"},
    {"warmup_steps", "train.schedule.warmup"},
    {"lr_scheduler", "train.schedule.name"},
    {"lr_scheduler_type", "train.schedule.name"},
    {"eval_steps", "train.evaluate_every"},
    {"eval_interval", "train.evaluate_every"},
    {"save_steps", "train.checkpoint_every"},
    {"dtype", "train.precision"},
    {"num_threads", "train.threads"},
    {"n_heads", "model.heads"},
    {"n_head", "model.heads"},
    {"num_heads", "model.heads"},
    {"num_attention_heads", "model.heads"},
    {"num_key_value_heads", "model.attention.kv_heads"},
    {"n_layers", "model.layers"},
    {"n_layer", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"hidden_size", "model.d_model"},
    {"hidden_dim", "model.d_model"},
    {"embed_dim", "model.d_model"},
    {"n_embd", "model.d_model"},
    {"intermediate_size", "model.d_ff"},
    {"dim_feedforward", "model.d_ff"},
    {"d_mlp", "model.d_ff"},
    {"d_head", "model.attention.d_key"},
    {"head_dim", "model.attention.d_key"},
    {"max_position_embeddings", "model.max_length"},
    {"max_seq_len", "model.max_length"},
    {"block_size", "model.max_length"},
    {"n_ctx", "model.max_length"},
    {"seq_len", "task.length"},
};

struct Advice {
  std::string_view name, text;
};

constexpr std::string_view kEpochs =
    "training is counted in steps: set train.steps; data.train / train.batch of them are an epoch";
constexpr std::string_view kDevice = "training runs on the CPU; train.threads sets how many cores it uses";

constexpr Advice kAdvice[] = {
    {"epochs", kEpochs},
    {"num_epochs", kEpochs},
    {"max_epochs", kEpochs},
    {"num_train_epochs", kEpochs},
    {"device", kDevice},
    {"accelerator", kDevice},
    {"gpu", kDevice},
    {"gpus", kDevice},
    {"cuda", kDevice},
    {"vocab_size",
     "the vocabulary comes from the task; task.symbols sets its size where a task has a choice"},
    {"num_workers", "data is made while training runs; train.threads sets how many cores training uses"},
    {"output_dir", "thimble train --out DIR names the run directory"},
};

template <class Row, std::size_t kRows>
const Row* find(const Row (&rows)[kRows], std::string_view name) {
  const auto row =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace

std::string_view advice(std::string_view key) {
  const Advice* row = find(kAdvice, key);
  return row == nullptr ? "" : row->text;
}

std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all) {
  if (const OtherName* other = find(kOtherNames, key); other != nullptr) return std::string(other->path);
  // The very name first, then one of the same section; among equally similar keys, the one nearest in the
  // tree.
  const auto rank = [&](const Named& named) {
    const auto [split, _] = std::mismatch(parent.begin(), parent.end(), named.path.begin(), named.path.end());
    const double similar = similarity(key, named.field->key);
    const bool here = named.path == parent + std::string(named.field->key);
    return std::tuple(similar == 1, here && similar >= kSimilarEnough, similar, split - parent.begin(),
                      -std::count(named.path.begin(), named.path.end(), '.'));
  };
  const auto best = std::max_element(all.begin(), all.end(),
                                     [&](const Named& a, const Named& b) { return rank(a) < rank(b); });
  return similarity(key, best->field->key) >= kSimilarEnough ? best->path : "";
}

}  // namespace thimble::config
