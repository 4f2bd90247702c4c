#include "thimble/inspect/array_sites.h"

#include <fmt/format.h>

namespace thimble {

namespace {

// Collects the sites of a model.
class Sites {
 public:
  Sites(const ModelConfig& config, std::int64_t outputs) : config_(config), outputs_(outputs) {}

  std::vector<ArraySite> all() {
    if (config_.kind == ModelKind::recurrent) {
      recurrent();
    } else {
      const bool pair = config_.kind == ModelKind::encoder_decoder;
      if (pair) embedding("encoder.", SiteKind::source_tokens, true);
      if (pair) blocks("encoder.", 0, SiteKind::source_embedding, true);
      if (pair) final_norm("encoder.", SiteKind::encoder_output, true);
      const std::string stack = pair ? "decoder." : "";
      embedding(stack, SiteKind::tokens, false);
      blocks(stack, pair ? config_.layers : 0, SiteKind::embedding, false);
      final_norm(stack, pair ? SiteKind::decoder_output : SiteKind::encoder_output, false);
    }
    add("logits", {SiteKind::logits}, 0, outputs_, "what the model returns");
    sites_.back().per_sequence =
        config_.kind == ModelKind::encoder && config_.output.per == OutputPer::sequence;
    return std::move(sites_);
  }

 private:
  ArraySite& add(const std::string& name, Site site, std::int64_t heads, std::int64_t columns,
                 const std::string& meaning, std::int64_t first = 0) {
    return sites_.emplace_back(ArraySite{.name = name,
                                         .meaning = meaning,
                                         .site = site,
                                         .first = first,
                                         .heads = heads,
                                         .columns = columns,
                                         .of_source = of_source_});
  }

  ArraySite& stream(const std::string& name, Site site, const std::string& meaning) {
    return add(name, site, 0, config_.d_model, meaning);
  }

  void embedding(const std::string& stack, SiteKind kind, bool of_source) {
    of_source_ = of_source;
    stream(stack + "hook_embed", {kind}, "the embedding of tokens, without positions");
    if (config_.positions == Positions::learned || config_.positions == Positions::sinusoidal)
      stream(stack + "hook_pos_embed", {of_source ? SiteKind::source_positions : SiteKind::positions},
             "the embedding of positions");
  }

  // Adds a norm of a pre-norm model, whose input is a site.
  void norm(const std::string& name, Site input, Site normalized, const char* meaning) {
    add(name + ".hook_scale", input, 0, 1, "the scale of the norm: what it divides by").scale =
        NormScale{config_.d_model, config_.norm_type == NormType::rms, config_.norm_epsilon};
    stream(name + ".hook_normalized", normalized, meaning);
  }

  void final_norm(const std::string& stack, SiteKind kind, bool of_source) {
    of_source_ = of_source;
    if (config_.norm == NormOrder::pre && config_.norm_final)
      norm(stack + "ln_final", last_, {kind}, "the residual stream after the last norm");
    of_source_ = false;
  }

  // Adds the sites of an attention, in the order of attention_layers(). Columns are those of MultiHeadAttention.
  void attention(const std::string& name, bool cross) {
    const AttentionSizes s = config_.attention_sizes();
    const AttentionConfig& c = config_.attention;
    const std::int32_t layer = attentions_++;
    const bool of_source = of_source_;
    const std::int64_t key = cross || c.tie_query_key || !c.in_proj ? 0 : s.heads * s.d_key,
                       value = c.in_proj ? key + s.kv_heads * s.d_key : 0;
    const Site queries{cross ? SiteKind::cross_queries : SiteKind::projections, layer},
        keys{cross ? SiteKind::cross_keys_values : SiteKind::projections, layer};
    add(name + "hook_q", queries, s.heads, s.d_key, "queries of heads");
    of_source_ = of_source || cross;
    add(name + "hook_k", keys, s.kv_heads, s.d_key, "keys of heads", key);
    add(name + "hook_v", keys, s.kv_heads, s.d_value, "values of heads", value);
    of_source_ = of_source;
    if (!cross && config_.positions == Positions::rotary) {
      const Site rotated{SiteKind::rotated, layer};
      add(name + "hook_rot_q", rotated, s.heads, s.d_key, "queries after rotary positions");
      add(name + "hook_rot_k", rotated, s.kv_heads, s.d_key, "keys after rotary positions", key);
    }
    weights(name, layer, s.heads, s.d_value, of_source || cross);
  }

  void weights(const std::string& name, std::int32_t layer, std::int64_t heads, std::int64_t d_value,
               bool keys_of_source) {
    if (kind_of(config_.attention.score).softmax)
      add(name + "hook_attn_scores", {SiteKind::attention_scores, layer}, heads, 0,
          "attention scores, after scale, ALiBi and mask")
          .keys_of_source = keys_of_source;
    add(name + "hook_pattern", {SiteKind::attention_weights, layer}, heads, 0,
        "attention weights, after mask and softmax")
        .keys_of_source = keys_of_source;
    add(name + "hook_z", {SiteKind::head_output, layer}, heads, d_value,
        "outputs of heads, before the output projection");
  }

  void blocks(const std::string& stack, std::int64_t first, SiteKind embedding, bool of_source) {
    of_source_ = of_source;
    const bool pre = config_.norm == NormOrder::pre, decoder = first > 0, net = config_.d_ff > 0;
    Site input{embedding};
    for (std::int64_t l = 0; l < config_.layers; ++l) {
      const auto block = static_cast<std::int32_t>(first + l);
      const std::string name = fmt::format("{}blocks.{}.", stack, l);
      stream(name + "hook_resid_pre", input, "the residual stream before the block");
      if (pre)
        norm(name + "ln1", input, {SiteKind::normalized, block}, "what attention reads, after its norm");
      if (config_.mixer == Mixer::attention) attention(name + "attn.", false);
      stream(name + "hook_attn_out", {SiteKind::attention_output, block},
             "what attention, or a convolution, adds to the residual stream");
      input = {SiteKind::residual_mid, block};
      stream(name + "hook_resid_mid", input, "the residual stream after attention");
      if (decoder) {
        attention(name + "cross.", true);
        stream(name + "hook_cross_out", {SiteKind::cross_output, block}, "what cross-attention adds");
        input = {SiteKind::residual_cross, block};
        stream(name + "hook_resid_cross", input, "the residual stream after cross-attention");
      }
      if (net) {
        const auto hidden = [&](const char* site, SiteKind kind, const char* meaning) {
          add(name + "mlp." + site, {kind, block}, 0, config_.d_ff, meaning);
        };
        const Site reads{SiteKind::feed_forward_input, block};
        constexpr const char* kReads = "what the feed-forward net reads";
        if (pre)
          norm(name + "ln2", input, reads, kReads);
        else
          stream(name + "hook_mlp_in", reads, kReads);
        hidden("hook_pre", SiteKind::feed_forward_pre, "its hidden layer, before the activation");
        if (config_.gated)
          hidden("hook_pre_linear", SiteKind::feed_forward_gate, "what multiplies the activation");
        hidden("hook_post", SiteKind::feed_forward_post, "its hidden layer");
        stream(name + "hook_mlp_out", {SiteKind::feed_forward_output, block},
               "what the feed-forward net adds to the residual stream");
      }
      if (net || !decoder) {
        input = {SiteKind::residual_out, block};
        stream(name + "hook_resid_post", input, "the residual stream after the block");
      }
    }
    last_ = input;
    of_source_ = false;
  }

  void recurrent() {
    of_source_ = true;
    stream("encoder.hook_embed", {SiteKind::source_embedding}, "the embedding of source tokens");
    stream("encoder.hook_states", {SiteKind::encoder_output}, "the states of the encoder");
    of_source_ = false;
    stream("decoder.hook_embed", {SiteKind::embedding}, "the embedding of tokens");
    if (config_.attention.score != Score::none) weights("cross.", 0, 1, config_.d_model, true);
    stream("decoder.hook_out", {SiteKind::decoder_output}, "what the output net reads");
  }

  const ModelConfig& config_;
  const std::int64_t outputs_;
  bool of_source_ = false;
  std::int32_t attentions_ = 0;
  Site last_{};  // of the residual stream of the last stack
  std::vector<ArraySite> sites_;
};

}  // namespace

std::string ArraySite::shape() const {
  const char* rows = of_source ? "S" : "T";
  if (per_sequence) return fmt::format("(B, {})", columns);
  if (is_map()) return fmt::format("(B, {}, {}, {})", heads, rows, keys_of_source ? "S" : "T");
  if (heads > 0) return fmt::format("(B, {}, {}, {})", rows, heads, columns);
  return fmt::format("(B, {}, {})", rows, columns);
}

std::vector<ArraySite> array_sites(const ModelConfig& config, std::int64_t outputs) {
  return Sites(config, outputs).all();
}

}  // namespace thimble
