#include "thimble/inspect/edges.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inspect/scores/require_heads.h"

namespace thimble {

std::int64_t Sender::stage() const {
  if (kind == Kind::embedding) return 0;
  return 2 * layer + (kind == Kind::head ? 1 : 2);
}

std::string Sender::name() const {
  if (kind == Kind::embedding) return "embedding";
  return kind == Kind::head ? fmt::format("{}.{}", layer, head) : fmt::format("ffn {}", layer);
}

std::string Receiver::name() const {
  if (kind == Kind::logits) return "logits";
  if (kind == Kind::feed_forward) return fmt::format("ffn {}", layer);
  constexpr std::string_view kNames[] = {"query", "key", "query and key", "value"};
  const std::string id =
      heads == 1 ? fmt::format("{}.{}", layer, head) : fmt::format("{}.{}-{}", layer, head, head + heads - 1);
  return fmt::format("{} {}", id, kNames[static_cast<std::size_t>(kind)]);
}

EdgeGraph::EdgeGraph(const ModelConfig& model) {
  require_heads(model);
  require<ConfigError>(
      model.kind == ModelKind::encoder,
      "edges: a model of kind {} has no single residual stream whose senders all reach the logits; --edges requires model.kind encoder",
      model.kind == ModelKind::recurrent ? "recurrent" : "encoder_decoder");
  require<ConfigError>(
      model.attention.in_proj,
      "edges: with model.attention.in_proj false, queries, keys and values are one vector and have no edges of their own; --edges requires in_proj true");
  using Kind = Receiver::Kind;
  const AttentionSizes sizes = model.attention_sizes();
  const std::int64_t shared = sizes.heads_per_kv_head();
  const bool tied = model.attention.tie_query_key;
  senders.push_back({Sender::Kind::embedding});
  for (std::int64_t l = 0; l < model.layers; ++l) {
    std::int64_t column = 0;
    const auto add = [&](Kind kind, std::int64_t heads, std::int64_t each, std::int64_t columns) {
      for (std::int64_t h = 0; h < heads; ++h, column += columns)
        receivers.push_back({.kind = kind,
                             .layer = l,
                             .head = h * each,
                             .heads = each,
                             .first = column,
                             .columns = columns,
                             .stage = 2 * l});
    };
    add(tied ? Kind::query_key : Kind::query, sizes.heads, 1, sizes.d_key);
    if (!tied) add(Kind::key, sizes.kv_heads, shared, sizes.d_key);
    add(Kind::value, sizes.kv_heads, shared, sizes.d_value);
    for (std::int64_t h = 0; h < sizes.heads; ++h) senders.push_back({Sender::Kind::head, l, h});
    if (model.d_ff == 0) continue;
    receivers.push_back({.kind = Kind::feed_forward, .layer = l, .stage = 2 * l + 1});
    senders.push_back({Sender::Kind::feed_forward, l});
  }
  receivers.push_back({.kind = Kind::logits, .layer = model.layers, .stage = 2 * model.layers});
  for (std::size_t r = 0; r < receivers.size(); ++r) {
    receivers[r].first_edge = edges.size();
    for (std::size_t s = 0; s < senders.size() && senders[s].stage() <= receivers[r].stage; ++s)
      edges.push_back({s, r});
    receivers[r].senders = edges.size() - receivers[r].first_edge;
  }
}

std::string EdgeGraph::name(std::size_t edge) const {
  return senders[edges[edge].sender].name() + " -> " + receivers[edges[edge].receiver].name();
}

namespace {

// Returns the indices of the edges by decreasing value.
template <class F>
std::vector<std::size_t> decreasing(const EdgesReport& report, const F& value) {
  std::vector<std::size_t> order(report.effects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t e) { return value(report.effects[e]); });
  return order;
}

}  // namespace

std::vector<std::size_t> EdgesReport::by_effect() const {
  return decreasing(*this, [](const EdgeEffect& e) { return std::abs(e.exact.effect); });
}

std::vector<std::size_t> EdgesReport::by_error() const {
  return decreasing(*this, [](const EdgeEffect& e) { return std::abs(e.attribution - e.exact.effect); });
}

bool EdgesReport::in_circuit(std::size_t edge) const {
  return std::ranges::find(circuit.edges, edge) != circuit.edges.end();
}

Json to_json(const EdgesReport& report) {
  Json edges = Json::array();
  for (std::size_t e = 0; e < report.effects.size(); ++e) {
    const Edge& edge = report.graph.edges[e];
    Json json{{"from", report.graph.senders[edge.sender].name()},
              {"to", report.graph.receivers[edge.receiver].name()}};
    json.update(to_json(report.effects[e].exact));
    json["attribution"] = report.effects[e].attribution;
    json["in_circuit"] = report.in_circuit(e);
    edges.push_back(std::move(json));
  }
  const Circuit& circuit = report.circuit;
  Json json = to_json(report.inputs);
  json.update({{"correlation", report.correlation},
               {"edges", std::move(edges)},
               {"circuit",
                {{"edges", circuit.edges.size()},
                 {"pairs", circuit.pairs},
                 {"required", report.keep},
                 {"kept", circuit.kept},
                 {"interval", circuit.interval ? to_json(*circuit.interval) : Json()},
                 {"left", circuit.left},
                 {"incompleteness", circuit.incompleteness},
                 {"tried", circuit.tried},
                 {"random",
                  {{"circuits", circuit.random},
                   {"kept_mean", circuit.random_mean},
                   {"kept_best", circuit.random_best},
                   {"left_mean", circuit.random_left}}}}}});
  return json;
}

}  // namespace thimble
