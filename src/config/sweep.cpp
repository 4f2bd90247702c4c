#include "thimble/config/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "config/fields.h"
#include "config/report.h"
#include "config/sweep_reader.h"
#include "config/text.h"
#include "thimble/core/error.h"

namespace thimble {
namespace {

using config::Change;
using config::Changes;
using config::Place;
using config::Report;
using config::SweepFile;

std::vector<std::string> texts(const Changes& changes) {
  std::vector<std::string> out;
  for (const Change& change : changes) out.push_back(change.text);
  return out;
}

// Loads the config of every setting and says what is wrong with it, once.
class Loader {
 public:
  Loader(const SweepFile& file, Report& report) : file_(file), report_(report) {
    Config config;
    const config::Section root = config::describe(config);
    for (const config::Named& named : flatten(root)) keys_.insert(named.path);
  }

  void load(Sweep& sweep, const Changes& own) {
    Changes all = file_.common;
    all.insert(all.end(), own.begin(), own.end());
    try {
      SweepSetting setting{texts(own), load_config(sweep.config, texts(all))};
      const auto [first, is_new] = settings_.emplace(to_yaml(setting.config), setting.overrides);
      if (!is_new) repeated(own, first->second);
      sweep.settings.push_back(std::move(setting));
    } catch (const ConfigError& e) {
      std::istringstream lines(e.what());
      std::string line, summary;
      std::getline(lines, summary);
      if (lines.eof()) refused(summary, all);  // the file cannot be read
      while (std::getline(lines, line)) refused(line, all);
    }
  }

 private:
  // A line of what load_config throws, placed where the sweep file, and not an argument, made the change.
  void refused(const std::string& line, const Changes& changes) {
    for (const Change& change : changes) {
      const std::string prefix = fmt::format("command line: {}: ", change.text);
      if (!line.starts_with(prefix)) continue;
      const std::string rule = line.substr(prefix.size());
      return keys_.contains(change.key) ? tell(change.place, change.text, rule)
                                        : tell(change.key_place, change.key, rule);
    }
    tell(file_.config_place, "config", line);
  }

  void tell(const Place& place, const std::string& key, const std::string& rule) {
    if (told_.insert(fmt::format("{}:{}:{}:{}:{}", place.argument, place.line, place.column, key, rule))
            .second)
      report_.problem(place, key, rule);
  }

  void repeated(const Changes& own, const std::vector<std::string>& before) {
    const auto differs = [&](const Change& change) {
      return std::ranges::find(before, change.text) == before.end();
    };
    const auto found = std::ranges::find_if(own, differs);
    const Change& change = found != own.end() ? *found : own.back();
    if (repeated_.insert({change.place.line, change.place.column}).second)
      report_.problem(change.place, change.text,
                      fmt::format("the same config as that of {}", fmt::join(before, " ")));
  }

  const SweepFile& file_;
  Report& report_;
  std::map<std::string, std::vector<std::string>> settings_;  // overrides by config
  std::set<std::string> keys_, told_;                         // keys_: of configs
  std::set<std::pair<int, int>> repeated_;
};

double count_runs(const SweepFile& file) {
  double runs = static_cast<double>(std::max<std::size_t>(1, file.list.size()) *
                                    std::max<std::size_t>(1, file.seeds.size()));
  for (const Changes& values : file.grid) runs *= static_cast<double>(values.size());
  return runs;
}

// The point of that number, the last key counting fastest.
Changes grid_point(const std::vector<Changes>& grid, std::size_t number) {
  Changes point;
  for (auto values = grid.rbegin(); values != grid.rend(); ++values) {
    point.insert(point.begin(), (*values)[number % values->size()]);
    number /= values->size();
  }
  return point;
}

}  // namespace

Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides) {
  Report report(path);
  SweepFile file = config::read_sweep(config::read_file(path), overrides, report);

  Sweep sweep{.file = path, .config = {}, .overrides = overrides, .settings = {}, .seeds = file.seeds};
  const double runs = count_runs(file);
  if (runs > kLargestSweep)
    report.problem({}, "", fmt::format("{:.0f} runs; a sweep has at most {}", runs, kLargestSweep));
  if (!file.config.empty() && runs <= kLargestSweep) {
    sweep.config = (std::filesystem::path(path).parent_path() / file.config).string();
    if (file.list.empty()) file.list.emplace_back();
    std::size_t points = 1;
    for (const Changes& values : file.grid) points *= values.size();
    Loader loader(file, report);
    for (const Changes& entry : file.list)
      for (std::size_t point = 0; point < points; ++point) {
        Changes own = entry;
        for (Change& change : grid_point(file.grid, point)) own.push_back(std::move(change));
        loader.load(sweep, own);
      }
  }
  report.finish();
  return sweep;
}

}  // namespace thimble
