#include "thimble/config/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "config/report.h"
#include "config/setting_loader.h"
#include "config/sweep_reader.h"
#include "config/text.h"

namespace thimble {
namespace {

using config::Change;
using config::Changes;
using config::Place;
using config::Report;
using config::SweepFile;

// Loads the config of every setting and says what is wrong with it.
class Loader {
 public:
  Loader(const SweepFile& file, Report& report) : file_(file), report_(report), loader_(report) {}

  void load(Sweep& sweep, const Changes& own) {
    Changes all = file_.common;
    all.insert(all.end(), own.begin(), own.end());
    std::optional<Config> config = loader_.load(sweep.config, file_.config_place, all);
    if (!config) return;
    SweepSetting setting{sweep.config, texts(own), *std::move(config)};
    const auto [first, is_new] = settings_.emplace(to_yaml(setting.config), setting.overrides);
    if (!is_new) repeated(own, first->second);
    sweep.settings.push_back(std::move(setting));
  }

 private:
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
  config::SettingLoader loader_;
  std::map<std::string, std::vector<std::string>> settings_;  // overrides by config
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
