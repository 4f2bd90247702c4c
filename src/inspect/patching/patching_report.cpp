#include "thimble/inspect/patching_report.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "inspect/effects/head_names.h"
#include "inspect/patching/corruption.h"
#include "thimble/engine/error.h"
#include "train/files/text/format.h"

namespace thimble {

namespace {

PatchEffect share_of(std::vector<double> changes, std::vector<double> totals, bool single) {
  const double total = std::accumulate(totals.begin(), totals.end(), 0.0);
  PatchEffect out{
      .effect = std::numeric_limits<double>::quiet_NaN(), .interval = {}, .pairs = std::ssize(totals)};
  if (!(total > 0) && !single) return out;
  out.effect = std::accumulate(changes.begin(), changes.end(), 0.0) / total;
  if (totals.size() < 2) return out;
  const double scale = static_cast<double>(totals.size()) / total;  // of counts of about 1
  for (double& x : changes) x *= scale;
  for (double& x : totals) x *= scale;
  out.interval = mean_change(changes, totals).interval;
  return out;
}

}  // namespace

std::string measure_text(PatchMeasure measure) {
  return measure == PatchMeasure::logit_difference ? "logit difference"
                                                   : "log-probability of the clean labels";
}

std::string PatchedInputs::text() const {
  if (corruption == "own") return counted(pairs, "pair") + " of your own";
  if (corruption == "resample") return counted(pairs, "pair") + " of test sequences";
  const std::string itself = counted(pairs, "test sequence") + ", each paired with itself";
  if (corruption == "order") return itself + " shuffled";
  if (corruption == "target") return itself + " with two match keys exchanged";
  return fmt::format("{} with another token at position {}", itself, *replaced_position(corruption));
}

std::vector<PatchEffect> patch_effects(const std::vector<std::vector<double>>& sums,
                                       const std::vector<double>& totals, PatchMeasure measure) {
  const double total = std::accumulate(totals.begin(), totals.end(), 0.0);
  const bool single = totals.size() == 1;
  require<DataError>(total != 0,
                     "patching: the model's logits are the same for both inputs; choose other inputs");
  require<DataError>(
      total > 0 || single || measure == PatchMeasure::log_probability,
      "patching: over {} pairs, the model's logits do not favor the labels of their own input (logit difference {:.3g}); train the model first",
      totals.size(), total);
  require<DataError>(
      total > 0 || single,
      "patching: over {} pairs, the labels of clean inputs are not less probable on the corrupted ones (log-probability {:+.3g}); choose other inputs, or train the model first",
      totals.size(), -total);
  std::vector<PatchEffect> effects;
  for (const std::vector<double>& sum : sums) {
    std::vector<double> changes, own_totals;  // of the pairs that have what is patched
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (std::isnan(sum[i])) continue;
      changes.push_back(sum[i]);
      own_totals.push_back(totals[i]);
    }
    effects.push_back(share_of(std::move(changes), std::move(own_totals), single));
  }
  return effects;
}

Json to_json(const PatchEffect& effect) {
  Json json{{"effect", std::isfinite(effect.effect) ? Json(effect.effect) : Json()}, {"pairs", effect.pairs}};
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

Json to_json(const PatchedInputs& inputs) {
  const bool logits = inputs.measure == PatchMeasure::logit_difference;
  return {{"pairs", inputs.pairs},
          {"inputs", inputs.text()},
          {"corruption", inputs.corruption},
          {"measure", logits ? "logit_difference" : "log_probability"}};
}

Json to_json(const PatchingReport& report) {
  Json heads = Json::array();
  for (const PatchingReport::Head& h : report.heads) {
    heads.push_back(head_json(h.id, h.attention));
    heads.back().update({{"noising", to_json(h.noising)}, {"denoising", to_json(h.denoising)}});
    if (!h.attention.empty()) heads.back()["attention"] = h.attention;
  }
  Json json = to_json(report.inputs);
  json["difference"] = report.difference;
  if (!report.clean.empty())
    json.update({{"clean", report.clean},
                 {"corrupted", report.corrupted},
                 {"clean_labels", report.clean_labels},
                 {"corrupted_labels", report.corrupted_labels}});
  json["heads"] = std::move(heads);
  return json;
}

}  // namespace thimble
