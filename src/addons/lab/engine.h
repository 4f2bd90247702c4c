// The engine of the lab: JSON requests of the page, and their answers.
#pragma once

#include <string>
#include <string_view>

namespace thimble::lab {

// The folder of the files next to a config, and below it that of a run to load; worker.js writes both.
inline constexpr const char *kFiles = "/lab", *kLoaded = "/lab/loaded";

// Answers a request, {"method": NAME, arguments...}, as README.md states. Throws nothing: an error is an
// answer.
std::string answer(std::string_view request) noexcept;

}  // namespace thimble::lab
