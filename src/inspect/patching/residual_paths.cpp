#include "inspect/patching/residual_paths.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns whether a set has edges of the receiver.
bool has_any(const std::vector<bool>& edges, const Receiver& receiver) {
  const auto first = edges.begin() + static_cast<std::ptrdiff_t>(receiver.first_edge);
  const auto last = first + static_cast<std::ptrdiff_t>(receiver.senders);
  return std::find(first, last, true) != last;
}

}  // namespace

ResidualPaths::ResidualPaths(const Transformer& model, const EdgeGraph& graph)
    : model_(model), graph_(graph) {
  for (const AttentionLayer& layer : model.attention_layers()) {
    std::vector<Tensor>& weights = output_weights_.emplace_back();
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      const ConstMatrixView from = model.attention(layer)->head(model.parameters(), h).output;
      Tensor& weight = weights.emplace_back(Shape{from.rows, from.cols});
      for (std::int64_t row = 0; row < from.rows; ++row)
        std::copy_n(from.row(row), from.cols, weight.matrix().row(row));
    }
  }
}

Var ResidualPaths::contribution(const Sender& sender, Var outputs) const {
  const auto layer = static_cast<std::size_t>(sender.layer), head = static_cast<std::size_t>(sender.head);
  const Tensor& weight = output_weights_[layer][head];
  const MultiHeadAttention& attention = *model_.layers()[layer].self_attn;
  Tape& tape = outputs.tape();
  std::optional<Var> bias;
  if (head == 0) bias = parameter_if(tape, attention.out_proj_bias);
  const std::int64_t width = attention.sizes.d_value;
  return linear(Columns(outputs, sender.head * width, width), tape.buffer(weight.shape(), weight.data()),
                bias);
}

Var ResidualPaths::input(const Receiver& receiver,
                         const std::function<Var(std::size_t)>& contribution) const {
  const bool post = model_.config().norm == NormOrder::post;
  Var x = contribution(0);
  std::size_t sender = 1;
  for (std::int64_t stage = 1; stage <= receiver.stage; ++stage) {
    const EncoderLayer& layer = model_.layers()[static_cast<std::size_t>((stage - 1) / 2)];
    const bool attention = stage % 2 == 1;
    if (!attention && !layer.norm2) continue;
    for (; sender < graph_.senders.size() && graph_.senders[sender].stage() == stage; ++sender)
      x = add(x, contribution(sender));
    if (post) x = attention ? layer.norm1(x) : (*layer.norm2)(x);
  }
  if (receiver.kind == Receiver::Kind::logits) return model_.norm() ? (*model_.norm())(x) : x;
  const EncoderLayer& layer = model_.layers()[static_cast<std::size_t>(receiver.layer)];
  if (receiver.kind == Receiver::Kind::feed_forward) return post ? x : (*layer.norm2)(x);
  const MultiHeadAttention& attention = *layer.self_attn;
  return linear_part(post ? x : layer.norm1(x), x.tape().parameter(attention.in_proj_weight),
                     parameter_if(x.tape(), attention.in_proj_bias), receiver.first, receiver.columns);
}

Site ResidualPaths::site(const Receiver& receiver) {
  if (receiver.kind == Receiver::Kind::logits) return {SiteKind::encoder_output};
  const auto layer = static_cast<std::int32_t>(receiver.layer);
  return {receiver.of_head() ? SiteKind::projections : SiteKind::feed_forward_input, layer};
}

void ContributionCapture::observe(Site site, const Shape& shape, ConstMatrixView value) {
  using Kind = Sender::Kind;
  if (site.kind != SiteKind::embedding && site.kind != SiteKind::head_output &&
      site.kind != SiteKind::feed_forward_output)
    return;
  const Kind kind = site.kind == SiteKind::embedding     ? Kind::embedding
                    : site.kind == SiteKind::head_output ? Kind::head
                                                         : Kind::feed_forward;
  Tape tape(Tape::Mode::inference);
  tape.bind(paths_.parameters(), {});
  const Var x = tape.buffer(shape, value.data);
  for (std::size_t s = 0; s < values_.size(); ++s) {
    const Sender& sender = paths_.graph().senders[s];
    if (sender.kind != kind || sender.layer != site.layer) continue;
    const Var y = kind == Kind::head ? paths_.contribution(sender, x) : x;
    values_[s] = Tensor(y.shape());
    std::copy_n(y.value().data, y.shape().elements(), values_[s].data());
  }
}

EdgeHooks::EdgeHooks(const ResidualPaths& paths, const Contributions& corrupted,
                     const std::vector<bool>& removed)
    : Replace(
          [&](Site site) {
            return std::ranges::count(paths.graph().receivers, site, &ResidualPaths::site) > 0;
          },
          [&, this](std::int64_t, Site site, const Shape&, MatrixView value) {
            std::int64_t rows = 0;
            for (const Receiver& receiver : paths.graph().receivers) {
              if (ResidualPaths::site(receiver) != site || !has_any(removed, receiver)) continue;
              Tape tape(Tape::Mode::inference);
              tape.bind(paths.parameters(), {});
              const Var x = paths.input(receiver, [&](std::size_t s) {
                const Tensor& from = (removed[receiver.first_edge + s] ? corrupted : actual_.values())[s];
                return tape.buffer(from.shape(), from.data());
              });
              const MatrixView columns =
                  receiver.of_head() ? value.column_block(receiver.first, receiver.columns) : value;
              for (std::int64_t row = 0; row < columns.rows; ++row)
                std::copy_n(x.value().row(row), columns.cols, columns.row(row));
              rows += columns.rows;
            }
            return rows;
          }),
      actual_(paths) {}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
