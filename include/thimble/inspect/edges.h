// Edges between the parts of an encoder, what each carries, and the smallest circuit of them.
//
// The residual stream is the sum of what its senders add: the embedding (tokens and positions), every head,
// every feed-forward net. Every later part receives it: the queries, keys and values of a head, a
// feed-forward net, the logits. An edge is one sender and one receiver. Path patching of an edge
// (Goldowsky-Dill et al., "Localizing model behavior with path patching", 2023) recomputes the receiver's
// input with the sender's contribution of the corrupted input, while the contributions of all other senders
// stay those of the run; everything after the receiver follows. In a post-norm model, the norms between
// sender and receiver are applied to the changed sum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/inspect/patching_report.h"
#include "thimble/train/json.h"

namespace thimble {

// A part that adds to the residual stream. Head 0 of a layer includes the bias of the output projection.
struct Sender {
  enum class Kind { embedding, head, feed_forward } kind;
  std::int64_t layer = 0, head = 0;

  // Returns 0 for the embedding, 2 l + 1 for a head and 2 l + 2 for the feed-forward net of layer l.
  std::int64_t stage() const;
  std::string name() const;  // "embedding", "0.1", "ffn 0"
};

// A part that reads the residual stream.
struct Receiver {
  enum class Kind { query, key, query_key, value, feed_forward, logits } kind;
  std::int64_t layer = 0, head = 0;
  std::int64_t heads = 1;               // that share a key or value, from `head` on
  std::int64_t first = 0, columns = 0;  // of a head: its columns of the layer's projection
  std::int64_t stage = 0;               // reads the senders up to this stage
  std::size_t first_edge = 0;           // index of the edge from sender 0; those from later senders follow
  std::size_t senders = 0;

  bool of_head() const { return kind < Kind::feed_forward; }
  std::string name() const;  // "1.0 key", "1.0-1 key" of two heads that share it, "ffn 1", "logits"
};

struct Edge {
  std::size_t sender, receiver;
};

// All edges of a model.
struct EdgeGraph {
  std::vector<Sender> senders;      // by stage
  std::vector<Receiver> receivers;  // by stage
  std::vector<Edge> edges;

  // Throws ConfigError for a model that is not an encoder with attention.
  explicit EdgeGraph(const ModelConfig& model);
  std::string name(std::size_t edge) const;  // "0.1 -> 1.0 key"
};

struct EdgeEffect {
  PatchEffect exact;  // of noising
  double attribution =
      0;  // edge attribution patching: the first-order estimate of the same (Syed et al. 2023)
};

// A set of edges; the others carry the contributions of the corrupted input. One half of the pairs chose the order in which
// edges go; all numbers are of the other one.
struct Circuit {
  std::vector<std::size_t> edges;
  std::int64_t pairs = 0;
  double kept = 1;                   // faithfulness: the share of the logit difference that remains
  std::optional<Interval> interval;  // of that, approximate
  double left = 0;  // the share that remains when instead the edges of the circuit are corrupted
  // Completeness (Wang et al. 2022): the largest |kept by circuit without K - kept by model without K| over `tried` sets K of
  // edges of the circuit: the whole circuit, random halves, and from the worst of these on whatever is worse by one edge.
  double incompleteness = 0;
  std::int64_t tried = 0;
  // Random circuits of as many edges.
  std::int64_t random = 0;
  double random_mean = 0, random_best = 0, random_left = 0;  // kept: mean and best; left: mean
};

struct EdgesReport {
  PatchedInputs inputs;
  EdgeGraph graph;
  std::vector<EdgeEffect> effects;  // by edge
  double correlation = 0;           // of exact effects and attributions; 0 if either is constant
  double keep = 0;                  // the share that the circuit had to keep
  Circuit circuit;

  // Return the edges by decreasing magnitude of their effect, and by decreasing error of their attribution.
  std::vector<std::size_t> by_effect() const;
  std::vector<std::size_t> by_error() const;
  bool in_circuit(std::size_t edge) const;
};

// Returns to_json(inputs) with {"correlation", "edges": [{"from", "to", "effect", "interval", "attribution", "in_circuit"}],
// "circuit": {...}}.
Json to_json(const EdgesReport&);

}  // namespace thimble
