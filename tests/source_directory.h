#pragma once

#include <string>

// Returns the root of the source tree, where configs, docs and fixtures are.
std::string source_directory();
