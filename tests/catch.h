// Catch2 as every test sees it, version 2 or 3, which differ in headers and in a few names.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>

#include <string>

namespace Catch {
using Detail::Approx;
}

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
}  // namespace Catch::Matchers
#endif

using namespace Catch::Matchers;  // NOLINT(google-build-using-namespace): what a matcher is for
