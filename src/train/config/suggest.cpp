#include "train/config/suggest.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble::config {
namespace {

// Names that other tools use, with spaces between them, and what stands for them here.
struct Row {
  std::string_view meaning, names;
};

constexpr Row kOtherNames[] = {
    // meaning: the key
    {"train.batch",
     "batch_size train_batch_size per_device_train_batch_size micro_batch_size global_batch_size"},
    {"train.steps", "max_steps num_steps max_iters num_iterations iterations total_steps"},
    {"train.optimizer.name", "optim optimizer_name"},
    {"train.optimizer.lr", "learning_rate max_lr base_lr"},
    {"train.optimizer.beta1", "adam_beta1"},
    {"train.optimizer.beta2", "adam_beta2"},
    {"train.optimizer.epsilon", "eps adam_epsilon"},
    {"train.optimizer.weight_decay", "wd"},
    {"train.clip_norm", "max_grad_norm grad_clip gradient_clip_val clip_grad_norm"},
    {"train.label_smoothing", "label_smoothing_factor"},
    {"train.schedule.warmup", "warmup_steps warmup_iters num_warmup_steps"},
    {"train.schedule.name", "lr_scheduler lr_scheduler_type scheduler"},
    {"train.schedule.final", "min_lr lr_end eta_min final_lr lr_min"},
    {"train.evaluate_every", "eval_steps eval_interval eval_every val_check_interval"},
    {"train.checkpoint_every", "save_steps save_every save_interval every_n_train_steps"},
    {"train.patience", "early_stopping_patience"},
    {"train.seed", "random_seed rng_seed"},
    {"train.log_heads", "watch_heads"},  // the name in thimble 0.1
    {"train.precision", "dtype torch_dtype"},
    {"train.threads", "num_threads n_threads"},
    {"model.kind", "model_type architecture"},
    {"model.heads", "n_heads n_head num_heads nhead num_attention_heads encoder_attention_heads"},
    {"model.attention.kv_heads", "num_key_value_heads n_kv_heads n_kv_head num_kv_heads n_key_value_heads"},
    {"model.attention.d_key", "d_head head_dim d_k kdim"},
    {"model.attention.d_value", "d_v vdim"},
    {"model.attention.dropout", "attention_dropout attn_dropout attn_pdrop attention_probs_dropout_prob"},
    {"model.attention.mask", "attention_dir is_causal causal"},
    {"model.layers",
     "n_layers n_layer num_layers num_hidden_layers num_encoder_layers encoder_layers num_blocks"},
    {"model.d_model", "hidden_size hidden_dim embed_dim embedding_dim n_embd d_embed"},
    {"model.d_ff", "intermediate_size dim_feedforward ffn_dim d_mlp n_inner"},
    {"model.dropout", "dropout_rate dropout_p resid_pdrop hidden_dropout_prob"},
    {"model.activation", "act_fn hidden_act activation_function"},
    {"model.gated", "gated_mlp"},
    {"model.norm", "norm_first pre_norm"},
    {"model.norm_type", "normalization_type"},
    {"model.norm_epsilon", "layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps layernorm_epsilon"},
    {"model.rotary_base", "rope_theta rotary_emb_base rope_base"},
    {"model.positions", "positional_encoding positional_embedding_type position_embedding_type"},
    {"model.embedding_std", "initializer_range init_std"},
    {"model.max_length",
     "max_position_embeddings max_seq_len max_seq_length max_len block_size n_ctx n_positions context_length"},
    {"task.length", "seq_len sequence_length"},
    {"task.file", "train_file data_file dataset_path"},
    {"data.train", "train_size num_train_samples"},
};

constexpr Row kAdvice[] = {
    // meaning: what to do, as no key means the same
    {"training is counted in steps: set train.steps; data.train / train.batch of them are an epoch",
     "epochs num_epochs n_epochs max_epochs num_train_epochs"},
    {"training runs on the CPU; train.threads sets how many cores it uses",
     "device devices accelerator gpu gpus cuda backend"},
    {"set train.precision to float32 or float64", "fp16 bf16 amp mixed_precision use_amp"},
    {"the vocabulary comes from the task; task.symbols sets its size where a task has a choice",
     "vocab_size d_vocab n_vocab num_tokens"},
    {"data is made while training runs; train.threads sets how many cores training uses",
     "num_workers dataloader_num_workers pin_memory prefetch_factor"},
    {"set train.batch to all sequences of a step; memory does not limit it, since a step reads it in parts",
     "gradient_accumulation_steps accumulate_grad_batches grad_accum_steps"},
    {"warm-up is counted in steps: set train.schedule.warmup", "warmup_ratio"},
    {"every epoch has an order of its own, given by train.seed, and leaves an incomplete batch out",
     "shuffle drop_last"},
    {"the decoder has as many layers as the encoder: set model.layers", "decoder_layers num_decoder_layers"},
    {"resume a run with thimble train CONFIG --resume", "resume resume_from_checkpoint"},
    {"thimble train --out DIR names the run directory",
     "output_dir out_dir save_dir log_dir default_root_dir"},
};

using Meanings = std::map<std::string_view, std::string_view>;

// Returns the meaning of every name.
Meanings by_name(std::span<const Row> rows) {
  Meanings out;
  for (const Row& row : rows)
    for (const std::string_view name : split_at(' ', row.names)) out.emplace(name, row.meaning);
  return out;
}

}  // namespace

const std::map<std::string_view, std::string_view>& other_names() {
  static const Meanings names = by_name(kOtherNames);
  return names;
}

std::string_view advice(std::string_view key) {
  static const Meanings texts = by_name(kAdvice);
  const auto found = texts.find(key);
  return found == texts.end() ? "" : found->second;
}

std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all) {
  if (const auto other = other_names().find(key); other != other_names().end())
    return std::string(other->second);
  // The same name ranks first, then a similar one of the same section; of equally similar keys, the one
  // nearest in the tree.
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
