#include "inspect/arrays/site_hooks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace thimble {
inline namespace THIMBLE_PRECISION {

bool SiteHooks::replace(Site site, const Shape&, MatrixView value) {
  Tensor& kept = kept_[site];
  kept = Tensor({value.rows, value.cols});
  std::ranges::fill(kept.values(), Real{1});
  for (const Substitution& one : plan_.substitutions) {
    if (one.site->site != site.start()) continue;
    const Cells in = cells(*one.site);
    const std::int64_t of_sequence = in.elements() / batch_.sequences;
    const auto index_of = [&](std::int64_t index, bool differs) {
      return differs ? index + first_ * of_sequence : index % of_sequence;
    };
    in.each(site, value,
            [&](Real* to, std::int64_t index, std::int64_t b, std::int64_t head, std::int64_t position) {
              const auto [rows, columns] = in.used(batch_, b);
              if (position >= rows) return;
              if (!one.heads.empty() && !one.heads[static_cast<std::size_t>(head)]) return;
              if (!one.positions.empty() && !one.positions[static_cast<std::size_t>(position)]) return;
              Real* keep = kept.data() + (to - value.data) / value.stride * value.cols +
                           (to - value.data) % value.stride;
              for (std::int64_t k = 0; k < columns; ++k) {
                if (!one.mask.empty() &&
                    one.mask[static_cast<std::size_t>(index_of(index + k, one.mask_differs))] == 0)
                  continue;
                to[k] = one.values.empty()
                            ? Real{0}
                            : one.values[static_cast<std::size_t>(index_of(index + k, one.values_differ))];
                require<DataError>(!std::isnan(to[k]),
                                   "replace {}: NaN for row {} at position {}, as an array has it beyond the "
                                   "end of a shorter row; leave it out by positions or a mask",
                                   one.site->name, first_ + b, position);
                keep[k] = 0;
              }
            });
  }
  return true;
}

void SiteHooks::observe(Site site, const Shape&, ConstMatrixView value) {
  for (auto& [of, to] : values) {
    if (of->site != site.start()) continue;
    const std::int64_t count = cells(*of).n[3];
    const std::optional<NormScale>& scale = of->scale;
    cells(*of).each(site, value, [&, &array = to](const Real* from, std::int64_t index, auto, auto, auto) {
      if (scale)
        array[static_cast<std::size_t>(index)] = scale_of(*scale, from);
      else
        std::copy_n(from, count, array.data() + index);
    });
  }
}

Real SiteHooks::scale_of(const NormScale& norm, const Real* x) {
  const auto count = static_cast<double>(norm.columns);
  const double mean = norm.rms ? 0 : std::accumulate(x, x + norm.columns, 0.0) / count;
  double squares = 0;
  for (std::int64_t i = 0; i < norm.columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return static_cast<Real>(std::sqrt(squares / count + norm.epsilon));
}

std::vector<Real> SiteHooks::gradient(const ArraySite& of, std::span<const ArraySite> sites) const {
  const Cells to = cells(of);
  std::vector<Real> out(static_cast<std::size_t>(to.elements()));
  if (of.site.kind == SiteKind::attention_weights) {
    add_weights(of, sites, out);
  } else {
    for (const auto& [site, x] : vars_)
      if (site.start() == of.site && x.needs_grad())
        to.each(site, ConstMatrixView(x.grad()), [&](const Real* from, std::int64_t index, auto, auto, auto) {
          std::copy_n(from, to.n[3], out.data() + index);
        });
  }
  return out;
}

void SiteHooks::add_weights(const ArraySite& of, std::span<const ArraySite> sites,
                            std::vector<Real>& out) const {
  const auto is = [&](const ArraySite& site, std::string_view suffix) {
    return site.name == of.name.substr(0, of.name.rfind('.') + 1).append(suffix);
  };
  const auto z = std::ranges::find_if(sites, [&](const ArraySite& s) { return is(s, "hook_z"); });
  auto v = std::ranges::find_if(sites, [&](const ArraySite& s) { return is(s, "hook_v"); });
  if (v == sites.end())  // of a recurrent model
    v = std::ranges::find_if(sites, [](const ArraySite& s) { return s.name == "encoder.hook_states"; });
  const auto of_v = std::ranges::find_if(vars_, [&](const auto& one) { return one.first == v->site; });
  const Cells to = cells(of);
  const std::int64_t keys = to.n[3], width = z->columns,
                     group = of.heads / std::max<std::int64_t>(v->heads, 1);
  const MatrixView all = of_v->second.value();
  for (const auto& [site, x] : vars_) {
    if (site.start() != z->site || !x.needs_grad()) continue;
    const auto left = kept_.find(site);  // of a Z that is replaced in part
    const MatrixView all_dz = x.grad();
    cells(*z).each(site, ConstMatrixView(all_dz),
                   [&](const Real* dz, auto, std::int64_t b, std::int64_t head, std::int64_t position) {
                     Real* dp = out.data() + ((b * to.n[1] + head) * to.n[2] + position) * keys;
                     const Real* keep =
                         left == kept_.end() ? nullptr : left->second.data() + (dz - all_dz.data);
                     for (std::int64_t k = 0; k < keys; ++k) {
                       const Real* row = all.row(b * keys + k) + v->first + head / group * width;
                       double sum = 0;
                       for (std::int64_t d = 0; d < width; ++d)
                         sum += keep == nullptr || keep[d] != 0 ? double{dz[d]} * double{row[d]} : 0;
                       dp[k] = static_cast<Real>(sum);
                     }
                   });
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
