// Checks the gradients of the ops that are named, or of all of them, with the engine and nothing else: what somebody who
// writes an op builds. `thimble gradcheck` says more.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "engine/ops/gradcheck_cases.h"

using namespace thimble;

int main(int argc, char** argv) {
  const std::span<char*> named(argv + 1, argv + argc);
  const char* const verdicts[] = {"ok", "WRONG", "undecided"};
  const std::vector<GradcheckCase> cases = gradcheck_cases();
  for (const char* name : named) {
    if (std::ranges::find(cases, name, &GradcheckCase::op) != cases.end()) continue;
    fmt::print(stderr,
               "gradcheck_op: there is no op {} with cases; ops are in include/thimble/engine/ops.h\n", name);
    return 2;
  }
  int checked = 0, other = 0;
  for (const GradcheckCase& c : cases) {
    if (!named.empty() && std::ranges::find(named, c.op) == named.end()) continue;
    for (const GradcheckResult& result : gradcheck(c.op, c.f, c.inputs)) {
      fmt::print("{:9} {} {} {}: {:.1e} {}\n", verdicts[static_cast<int>(result.verdict)], c.op, c.variant,
                 result.input, result.worst_error, result.reason);
      ++checked;
      other += result.verdict != GradcheckVerdict::ok;
    }
  }
  fmt::print("{} gradients of inputs checked, {} not shown to be right\n", checked, other);
  return other > 0;
}
