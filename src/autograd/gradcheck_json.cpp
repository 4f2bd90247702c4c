#include "thimble/autograd/gradcheck_json.h"

namespace thimble {

Json to_json(std::span<const GradcheckResult> results) {
  Json list = Json::array();
  for (const GradcheckResult& r : results) {
    list.push_back({{"op", r.op},
                    {"input", r.input},
                    {"worst_error", r.worst_error},
                    {"analytic", r.analytic},
                    {"numeric", r.numeric},
                    {"index", r.index},
                    {"passed", r.passed}});
    if (!r.passed) list.back()["failure"] = r.failure;
  }
  return list;
}

}  // namespace thimble
