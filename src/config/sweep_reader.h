// Reading a sweep file, before any config is looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/map_reader.h"

namespace thimble::config {

struct SweepFile {
  std::string config;  // "" if there is a problem with it
  Place config_place;
  Changes common;             // from the command line
  std::vector<Changes> list;  // each entry, of at least one change
  std::vector<Changes> grid;  // the values of each key, at least one
  std::vector<std::uint64_t> seeds;
};

// Reports what is wrong; what is right is returned.
SweepFile read_sweep(const std::string& text, const std::vector<std::string>& overrides, Report& report);

}  // namespace thimble::config
