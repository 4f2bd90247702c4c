// Hooks that copy the values of sites, and replace them in part.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "inspect/arrays/site_cells.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A replacement with its values.
struct Substitution {
  const ArraySite* site;
  std::vector<Real> values{};                        // none: zeros
  std::vector<std::uint8_t> mask{};                  // none: everywhere
  bool values_differ = false, mask_differs = false;  // by sequence
  std::vector<bool> heads{}, positions{};
};

// What a request asks for, resolved.
struct Plan {
  std::vector<const ArraySite*> sites{}, gradients{};
  std::vector<std::size_t> parameters{};  // index in ParameterStore::entries()
  std::vector<Substitution> substitutions{};
  std::vector<Real> cotangent{};
  std::vector<std::int64_t> positions{};  // of the arrays of sites; none: all
  bool loss = false, trains = false;
  std::int64_t labels = 0;  // in all of the batch
};

// Hooks of a pass over sequences from `first` on. The vectors of `memory` serve again, since fresh pages cost more than the
// copies that they are for.
class SiteHooks : public Hooks {
 public:
  SiteHooks(const Plan& plan, std::int64_t first, const Batch& batch, std::vector<std::vector<Real>> memory)
      : plan_(plan), first_(first), batch_(batch) {
    for (const ArraySite* site : plan.sites) {
      if (const std::size_t i = values.size(); i < memory.size()) values[site] = std::move(memory[i]);
      values[site].assign(static_cast<std::size_t>(cells(*site).elements()), Real{0});
    }
  }

  Cells cells(const ArraySite& site) const {
    return {site, batch_.sequences, batch_.length, batch_.source_length};
  }

  bool wants(Site site) const override {
    const auto is = [&](const ArraySite* one) { return one->site == site.start(); };
    return std::ranges::any_of(plan_.sites, is) || std::ranges::any_of(plan_.gradients, is) ||
           std::ranges::any_of(plan_.substitutions, [&](const Substitution& one) { return is(one.site); });
  }

  // With gradients all values are copied, as one may have other readers than those after its site.
  bool may_replace(Site site) const override {
    return (plan_.trains && site.kind != SiteKind::attention_weights) ||
           std::ranges::any_of(plan_.substitutions,
                               [&](const Substitution& one) { return one.site->site == site.start(); });
  }

  bool replace(Site, const Shape&, MatrixView value) override;

  ConstMatrixView kept(Site site) const override { return std::as_const(kept_.at(site)).matrix(); }

  void observe(Site, const Shape&, ConstMatrixView value) override;

  void record(Site site, Var x) override {
    if (plan_.trains) vars_.emplace_back(site, x);
  }

  // Returns the gradient of a site after the backward pass.
  std::vector<Real> gradient(const ArraySite& of, std::span<const ArraySite> sites) const;

  std::map<const ArraySite*, std::vector<Real>> values;

 private:
  static Real scale_of(const NormScale& norm, const Real* x);

  // Sets the gradient of attention weights P from that of Z = P V: dP = dZ V^T.
  void add_weights(const ArraySite& of, std::span<const ArraySite> sites, std::vector<Real>& out) const;

  const Plan& plan_;
  const std::int64_t first_;
  const Batch& batch_;
  std::map<Site, Tensor> kept_;
  std::vector<std::pair<Site, Var>> vars_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
