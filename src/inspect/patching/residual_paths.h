// The contributions to the residual stream of an encoder, and hooks that patch edges; see edges.h.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/model/transformer.h"
#include "inspect/patching/pairs.h"
#include "thimble/inspect/edges.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// What the senders of a model add to the residual stream, and what its receivers read.
class ResidualPaths {
 public:
  ResidualPaths(const Transformer& model, const EdgeGraph& graph);

  const EdgeGraph& graph() const { return graph_; }
  const ParameterStore& parameters() const { return model_.parameters(); }

  // Returns the contribution of a head (B, T, C) from the outputs of all heads of its layer (B, T, H Dv).
  Var contribution(const Sender& sender, Var outputs) const;

  // Returns the input of a receiver, from the contributions of the senders: its columns of the projection (B, T,
  // columns), or the input of the feed-forward net or of the output net (B, T, C).
  Var input(const Receiver& receiver, const std::function<Var(std::size_t sender)>& contribution) const;

  // Returns the output of a receiving feed-forward net for its input.
  Var feed_forward(const Receiver& receiver, Var input) const {
    return (*model_.layers()[static_cast<std::size_t>(receiver.layer)].feed_forward)(input, {});
  }

  // Returns the site whose value the input of a receiver replaces.
  static Site site(const Receiver& receiver);

 private:
  const Transformer& model_;
  const EdgeGraph& graph_;
  std::vector<std::vector<Tensor>> output_weights_;  // [layer][head], (C, Dv)
};

// The contributions of all senders, (B, T, C).
using Contributions = std::vector<Tensor>;

// Stores the contributions of a pass, and its values on the tape.
class ContributionCapture : public ChunkHooks {
 public:
  explicit ContributionCapture(const ResidualPaths& paths)
      : paths_(paths), values_(paths.graph().senders.size()) {}

  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
  void record(Site site, Var x) override { on_tape_.emplace(site, x); }
  const Contributions& values() const { return values_; }
  Var on_tape(Site site) const { return on_tape_.at(site); }

 private:
  const ResidualPaths& paths_;
  Contributions values_;
  std::map<Site, Var> on_tape_;
};

// Patches the edges that are removed: their receivers get the contributions of the corrupted input.
class EdgeHooks : public Replace {
 public:
  EdgeHooks(const ResidualPaths& paths, const Contributions& corrupted, const std::vector<bool>& removed);

  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    actual_.observe(site, shape, value);
  }

 private:
  ContributionCapture actual_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
