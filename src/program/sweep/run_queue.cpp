#include "program/sweep/run_queue.h"

#include "thimble/engine/error.h"
#include "train/files/lock.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

class LockedRun : public TakenRun {
 public:
  explicit LockedRun(const fs::path& file) : lock_(file, file.string()) {}

 private:
  FileLock lock_;
};

fs::path lock_of(const fs::path& run) { return run.string() + ".lock"; }

RunQueue local;
RunQueue* current = &local;

}  // namespace

std::unique_ptr<TakenRun> RunQueue::take(const fs::path& run) {
  try {
    return std::make_unique<LockedRun>(lock_of(run));
  } catch (const FileError&) {
    if (holder(run).empty()) throw;
    return nullptr;
  }
}

std::string RunQueue::holder(const fs::path& run) { return FileLock::holder(lock_of(run)); }

Submission RunQueue::submit(const Sweep&, const SweepOptions&, const SubmitOptions&) {
  throw ConfigError(
      "--slurm: this thimble was built without Slurm; build with -DTHIMBLE_CLUSTER=ON, or leave out --slurm");
}

RunQueue& run_queue() { return *current; }

void set_run_queue(RunQueue& other) { current = &other; }

}  // namespace thimble
