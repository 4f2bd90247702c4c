#include "thimble/inspect/patching/patching_report.h"

#include <cmath>
#include <numeric>

#include "thimble/core/error.h"

namespace thimble {

std::vector<PatchEffect> patch_effects(const std::vector<std::vector<double>>& sums,
                                       std::vector<double> totals) {
  const double total = std::accumulate(totals.begin(), totals.end(), 0.0);
  const bool single = totals.size() == 1;
  require<DataError>(total != 0,
                     "patching: the model's logits are the same for both inputs; choose other inputs");
  require<DataError>(total > 0 || single,
                     "patching: over {} pairs, the model's logits do not favor the labels of their own input "
                     "(logit difference {:.3g}); train the model first",
                     totals.size(), total);
  std::vector<PatchEffect> effects;
  for (const std::vector<double>& sum : sums)
    effects.push_back({std::accumulate(sum.begin(), sum.end(), 0.0) / total});
  if (single) return effects;
  const double scale = static_cast<double>(totals.size()) / total;  // of counts of about 1
  std::vector<std::vector<double>> scaled = sums;
  for (std::vector<double>& sum : scaled)
    for (double& x : sum) x *= scale;
  for (double& x : totals) x *= scale;
  for (std::size_t k = 0; k < effects.size(); ++k)
    effects[k].interval = mean_change(scaled[k], totals).interval;
  return effects;
}

Json to_json(const PatchEffect& effect) {
  Json json{{"effect", effect.effect}};
  if (effect.interval) json["interval"] = to_json(*effect.interval);
  return json;
}

namespace {

Json to_json(const HeadPatch& patch) {
  Json json = thimble::to_json(patch.all);
  json["positions"] = Json::array();
  for (const PatchEffect& at : patch.at) json["positions"].push_back(thimble::to_json(at));
  return json;
}

}  // namespace

Json to_json(const PatchingReport& report) {
  Json heads = Json::array();
  for (const PatchingReport::Head& h : report.heads) {
    heads.push_back({{"layer", h.id.layer},
                     {"head", h.id.head},
                     {"noising", to_json(h.noising)},
                     {"denoising", to_json(h.denoising)}});
    if (!h.attention.empty()) heads.back()["attention"] = h.attention;
  }
  Json json{{"pairs", report.pairs}};
  if (!report.clean.empty()) json.update({{"clean", report.clean}, {"corrupted", report.corrupted}});
  json["heads"] = std::move(heads);
  return json;
}

}  // namespace thimble
