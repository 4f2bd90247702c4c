#include "train/step/gradcheck_json.h"

#include <algorithm>

namespace thimble {

std::string_view to_string(GradcheckVerdict verdict) {
  constexpr std::string_view kNames[] = {"ok", "wrong", "undecided"};
  return kNames[static_cast<std::size_t>(verdict)];
}

bool passed(std::span<const GradcheckResult> results) {
  const auto with = [&](GradcheckVerdict v) {
    return std::ranges::count(results, v, &GradcheckResult::verdict);
  };
  return with(GradcheckVerdict::wrong) == 0 && with(GradcheckVerdict::ok) > 0;
}

Json to_json(std::span<const GradcheckResult> results) {
  Json list = Json::array();
  for (const GradcheckResult& r : results) {
    list.push_back({{"op", r.op},
                    {"input", r.input},
                    {"worst_error", r.worst_error},
                    {"analytic", r.analytic},
                    {"numeric", r.numeric},
                    {"index", r.index},
                    {"error", r.error},
                    {"verdict", to_string(r.verdict)}});
    if (!r.reason.empty()) list.back()["reason"] = r.reason;
  }
  return list;
}

}  // namespace thimble
