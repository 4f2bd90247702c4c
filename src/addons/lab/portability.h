// What emscripten 3.1.6 and Highway 1.0.3 lack on WebAssembly; every source includes it first.
#pragma once

// Highway has no vectors of double there.
#ifdef THIMBLE_DOUBLE
#define HWY_COMPILE_ONLY_SCALAR
#else
#define HWY_COMPILE_ONLY_STATIC
#endif

#ifdef __cplusplus
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

namespace std {  // NOLINT(cert-dcl58-cpp): what the standard declares here

inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const auto is_start = [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; };
  const string text(first, last);
  char* end = nullptr;
  if (text.empty() || !is_start(text[0]) || text.find_first_of("xX") != string::npos)
    return {first, errc::invalid_argument};
  const double number = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* const rest = first + (end - text.c_str());
  if (number - number != 0) return {rest, errc::result_out_of_range};
  value = number;
  return {rest, errc()};
}

}  // namespace std

// clang 14 gives a function whose address is taken the type () -> void while what it returns is not instantiated,
// and a call through that address fails.
static_assert(sizeof(std::vector<std::string>) > 0);
#endif
