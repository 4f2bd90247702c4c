// Runs whose files tests change.
#pragma once

#include <filesystem>
#include <string>

#include "catch.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"

namespace thimble {

namespace fs = std::filesystem;

inline Config short_run_config(std::int64_t steps) {
  Config config = small_config();
  config.train.steps = steps;
  config.train.evaluate_every = 4;
  config.train.checkpoint_every = 5;
  config.train.schedule.name = ScheduleKind::constant;
  return config;
}

inline void replace_in_file(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file);
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  write_file(file, text.replace(at, from.size(), to));
}

inline TrainResult resume_run(const fs::path& run) {
  return train(open_config((run / "config.yaml").string()), {.directory = run.string(), .resume = true});
}

// Returns the text with another digit in a number.
inline std::string with_other_digit(std::string text, std::size_t at) {
  text[at] = text[at] == '7' ? '8' : '7';
  return text;
}

inline std::string remarks_on(const fs::path& run) {
  std::string all;
  for (const std::string& remark : read_timeline(run, open_run(run).state).remarks) all += remark;
  return all;
}

struct Remarks : TrainObserver {
  void on_remark(const std::string& remark) override { all += remark; }
  std::string all;
};

inline TrainResult resume(const fs::path& run, std::string* remarks = nullptr) {
  Remarks observer;
  const TrainResult result = train(open_config((run / "config.yaml").string()),
                                   {.directory = run, .resume = true, .observer = &observer});
  if (remarks != nullptr) *remarks = observer.all;
  return result;
}

}  // namespace thimble
