#include "train/config/model_rules.h"

#include <fmt/ranges.h>

#include "train/config/differences.h"

namespace thimble::config {
namespace {

// Keys that only models with several heads use.
const std::vector<std::string> kHeadKeys = {"model.heads",
                                            "model.attention.combine",
                                            "model.attention.in_proj",
                                            "model.attention.in_proj_std",
                                            "model.attention.tie_query_key",
                                            "model.attention.kv_heads",
                                            "model.attention.d_key",
                                            "model.attention.d_value"};

// Reports the keys that are set without effect on such a model, named by `model_name`, which key `because_of`
// chooses instead of `other`. One problem names all of them, as its location may be that of `because_of`.
void check_unused(const ModelConfig& model, const std::vector<std::string>& keys,
                  const std::string& because_of, std::string_view model_name, std::string_view other,
                  Report& report) {
  Config config;
  config.model = model;
  const std::vector<Difference> changed = differences(config, Config(), "", "");
  std::vector<std::string> unused;
  for (const std::string& key : keys)
    if (std::ranges::find(changed, key, &Difference::key) != changed.end()) unused.push_back(key);
  if (unused.empty()) return;
  const bool one = unused.size() == 1;
  const std::string rule =
      fmt::format("{} {} no effect on {}; remove {}, or set {} to {}", fmt::join(unused, ", "),
                  one ? "has" : "have", model_name, one ? "it" : "them", because_of, other);
  unused.push_back(because_of);
  report.conflict(unused, rule);
}

// Reports what requires projections of a head's own. Without them a head's queries, keys and values are the same
// d_model / heads columns of the input.
void check_unprojected(const ModelConfig& model, Report& report) {
  check_unused(model,
               {"model.attention.in_proj_std", "model.attention.tie_query_key", "model.attention.kv_heads",
                "model.attention.d_key", "model.attention.d_value"},
               "model.attention.in_proj", "attention without projections", "true", report);
  report.conflict_if(model.positions == Positions::rotary, {"model.positions", "model.attention.in_proj"},
                     "rotary positions rotate projections; choose other positions, or set in_proj to true");
}

void check_heads(const ModelConfig& model, Report& report) {
  const AttentionConfig& attention = model.attention;
  report.conflict_if(
      attention.score == Score::none, {"model.attention.score", "model.kind"},
      "score none requires a recurrent model; choose another score, or set model.kind to recurrent");
  report.conflict_if(
      model.d_model % model.heads != 0 && (attention.d_key == 0 || attention.d_value == 0),
      {"model.heads", "model.d_model"},
      "heads ({}) must divide d_model ({}); change one, or set model.attention.d_key and d_value",
      model.heads, model.d_model);
  const AttentionSizes sizes = model.attention_sizes();
  report.conflict_if(model.heads % sizes.kv_heads != 0, {"model.attention.kv_heads", "model.heads"},
                     "kv_heads ({}) must divide heads ({}); choose a divisor, or 0 for one each",
                     sizes.kv_heads, model.heads);
  report.conflict_if(attention.tie_query_key && sizes.kv_heads != model.heads,
                     {"model.attention.tie_query_key", "model.attention.kv_heads"},
                     "tie_query_key requires as many kv_heads ({}) as heads ({}); set kv_heads to 0",
                     sizes.kv_heads, model.heads);
  if (!attention.in_proj) check_unprojected(model, report);
  report.conflict_if(
      model.positions == Positions::alibi && !sizes.softmax, {"model.positions", "model.attention.score"},
      "alibi positions require a softmax, which score linear leaves out; choose another score, or other positions");
  report.conflict_if(
      model.positions == Positions::rotary &&
          (!kind_of(attention.score).product || kind_of(attention.score).matrices()),
      {"model.positions", "model.attention.score"},
      "rotary positions require score scaled_dot or dot; choose one of them, or other positions");
  report.conflict_if(model.positions == Positions::rotary && sizes.d_key % 2 != 0,
                     {"model.positions", "model.attention.d_key", "model.d_model", "model.heads"},
                     "rotary positions require an even d_key, not {}; set model.attention.d_key",
                     sizes.d_key);
}

// Keys that only encoders use.
const std::vector<std::string> kEncoderKeys = {
    "model.norm_weight", "model.norm_embedding", "model.norm_final", "model.bias",
    "model.init_std",    "model.init_scaled",    "model.output.tied"};

// Reports keys of language models that exclude one another.
void check_language_model(const ModelConfig& model, Report& report) {
  report.conflict_if(
      !model.norm_final && model.norm == NormOrder::post, {"model.norm_final", "model.norm"},
      "a post-norm model has no norm before the output; set model.norm to pre, or remove norm_final");
  report.conflict_if(model.output.tied && model.output.hidden > 0,
                     {"model.output.tied", "model.output.hidden"},
                     "a tied output is one linear layer; set model.output.hidden to 0, or remove tied");
  report.conflict_if(model.init_scaled && model.init_std == 0, {"model.init_scaled", "model.init_std"},
                     "init_scaled divides init_std; set model.init_std, such as 0.02, or remove init_scaled");
  if (model.init_std == 0) return;
  check_unused(model, {"model.embedding_std", "model.position_std", "model.attention.in_proj_std"},
               "model.init_std", "a model with init_std", "0", report);
}

void check_positions(const ModelConfig& model, Report& report) {
  if (model.positions != Positions::rotary)
    check_unused(model, {"model.rotary", "model.rotary_base"}, "model.positions",
                 "positions that are not rotary", "rotary", report);
  report.conflict_if(model.positions == Positions::sinusoidal && model.d_model % 2 != 0,
                     {"model.d_model", "model.positions"},
                     "sinusoidal positions require an even d_model, not {}", model.d_model);
}

void check_convolution(const ModelConfig& model, Report& report) {
  const AttentionConfig& a = model.attention;
  std::vector<std::string> keys = kHeadKeys;
  keys.insert(keys.end(), {"model.attention.dropout", "model.attention.score"});
  check_unused(model, keys, "model.mixer", "a convolution", "attention", report);
  report.conflict_if(model.positions == Positions::rotary || model.positions == Positions::alibi,
                     {"model.positions", "model.mixer"},
                     "rotary and alibi positions require attention; choose sinusoidal, learned or none");
  report.conflict_if(
      a.mask == Mask::none && model.window % 2 == 0, {"model.window", "model.attention.mask"},
      "a centered window must be odd, not {}; change it, or set model.attention.mask to causal",
      model.window);
}

void check_next(const ModelConfig& model, Report& report) {
  report.conflict_if(model.output.per != OutputPer::next, {"model.output.per", "model.kind"},
                     "a decoder predicts the next token; set model.output.per to next");
}

void check_recurrent(const ModelConfig& model, Report& report) {
  std::vector<std::string> keys = kHeadKeys;
  keys.insert(keys.end(),
              {"model.attention.mask", "model.layers", "model.d_ff", "model.norm", "model.norm_type",
               "model.norm_epsilon", "model.activation", "model.gated", "model.positions", "model.rotary",
               "model.rotary_base", "model.mixer", "model.window", "model.output.hidden"});
  check_unused(model, keys, "model.kind", "a recurrent model", "encoder_decoder", report);
  check_next(model, report);
  report.conflict_if(
      model.attention.score == Score::none && model.attention.dropout > 0,
      {"model.attention.dropout", "model.attention.score"},
      "dropout of attention weights has no effect with score none; remove it, or choose a score");
  report.conflict_if(
      model.d_model % 2 != 0, {"model.d_model", "model.kind"},
      "a recurrent model requires an even d_model, not {}, half of it for each direction of the encoder",
      model.d_model);
}

}  // namespace

void check_model(const ModelConfig& model, Report& report) {
  if (model.kind == ModelKind::encoder)
    check_language_model(model, report);
  else
    check_unused(model, kEncoderKeys, "model.kind", "a model with a decoder", "encoder", report);
  if (model.kind == ModelKind::recurrent) return check_recurrent(model, report);
  if (model.mixer == Mixer::attention) check_heads(model, report);
  if (model.mixer == Mixer::convolution) check_convolution(model, report);
  report.conflict_if(model.mixer == Mixer::attention && model.window != ModelConfig().window,
                     {"model.window", "model.mixer"},
                     "window has no effect on attention; remove it, or set model.mixer to convolution");
  report.conflict_if(model.gated && model.d_ff == 0, {"model.gated", "model.d_ff"},
                     "gated requires a feed-forward network; set model.d_ff above 0, or remove gated");
  check_positions(model, report);
  if (model.kind == ModelKind::encoder) {
    report.conflict_if(
        model.output.per == OutputPer::next && model.attention.mask != Mask::causal,
        {"model.attention.mask", "model.output.per"},
        "output per next token requires the causal mask, or the model could read the answer; set model.attention.mask to causal");
    return;
  }
  check_next(model, report);
  report.conflict_if(
      model.mixer == Mixer::convolution, {"model.mixer", "model.kind"},
      "an encoder-decoder requires attention; set model.mixer to attention, or model.kind to encoder");
  report.conflict_if(
      model.attention.mask != Mask::none, {"model.attention.mask", "model.kind"},
      "the mask of the encoder must be none (that of the decoder is always causal); set model.attention.mask to none");
}

}  // namespace thimble::config
