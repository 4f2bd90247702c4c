// Tokens that a reader takes for the same.
#pragma once

#include <string>
#include <vector>

namespace thimble {

// Returns a remark on tokens that differ only in how a letter with an accent is written (composed, or a letter
// and a combining mark), in no-break or ideographic spaces, or in characters without width; "" without any.
std::string alike_remark(const std::vector<std::string>& tokens);

}  // namespace thimble
