// The report as an HTML page.
#pragma once

#include <string>

#include "thimble/train/json.h"

namespace thimble {

struct ForwardTrace;
struct InspectReport;

// Returns a self-contained HTML file that loads nothing from the network. The user's own sequence, if any, is
// the first example. Attention weights of examples are stored in steps of 1/65535, or of 1/255 where that
// would take more than 2 MiB; mean weights and rollout in steps of 1/65535; token maps in steps of their
// largest magnitude / 32767; attention at checkpoints in steps of 1/255, with fewer examples and then fewer
// checkpoints where it would take more than 2 MiB; every other number as in the JSON report. `more` are members
// of the page's report that come first on the page: "patching", a PatchingReport, or "edges", an EdgesReport.
// Throws NumericError for a weight outside [0, 1] or one that is not finite.
std::string html_page(const InspectReport& report, const ForwardTrace* own = nullptr,
                      const Json& more = Json::object());

}  // namespace thimble
