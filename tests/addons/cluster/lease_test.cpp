#include <chrono>
#include <filesystem>
#include <thread>

#include "addons/cluster/claim.h"
#include "catch.h"
#include "program/sweep/workshop.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"

using namespace thimble;
namespace fs = std::filesystem;

namespace {

// The queue of claims with a lease of 1.5 seconds, for the lifetime of the object.
class ShortLease : public RunQueue {
 public:
  ShortLease() : before_(run_queue()) { set_run_queue(*this); }
  ~ShortLease() override { set_run_queue(before_); }
  ShortLease(const ShortLease&) = delete;
  ShortLease& operator=(const ShortLease&) = delete;

  std::unique_ptr<TakenRun> take(const fs::path& run) override { return Claim::take(run, lease()); }
  std::string holder(const fs::path& run) override { return claim_holder(run, lease()); }
  double lease() const override { return 1.5; }

 private:
  RunQueue& before_;
};

}  // namespace

TEST_CASE("a sweep waits for the runs of others, and takes them over when a lease ends", "[sweep][slow]") {
  Workshop w;
  ShortLease queue;
  fs::create_directories(w.directory / "out");
  write_file(w.directory / "out/sweep.json", json_text(sweep_json(w.sweep, plan_runs(w.sweep), "out")));
  fs::create_directories(w.directory / "out/runs");
  const std::string elsewhere = "process 1 on elsewhere\n0-0-0-0\n1\n";
  write_file(w.directory / "out/runs/001-heads_1-seed_7.claim-1", elsewhere);
  write_file(w.directory / "out/runs/003-heads_2-seed_7.claim-1", elsewhere);
  std::thread other([&] {  // finishes the first of them, and never renews the second
    while (!fs::exists(w.directory / "out/runs/004-heads_2-seed_8/summary.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    SweepRun run = plan_runs(w.sweep)[0];
    fs::create_directories(w.directory / "out/runs" / run.name);
    run.result = {{"steps", 9}, {"target_missed", true}, {"weights_hash", "of 9 steps"}};
    write_file(w.directory / "out/runs" / run.name / "summary.json", summary_text(run.result, run.identity));
  });
  const SweepResult result = w.run();
  other.join();
  CHECK(statuses(result.runs) == "missed target, done, done, done");
  CHECK(result.runs[0].result["steps"] == 9);
  CHECK(w.json()["settings"][0]["runs"][0]["result"]["steps"] == 9);
  CHECK_THAT(w.calls(), !ContainsSubstring("heads=1 train.seed=7"));
  CHECK(fs::exists(w.directory / "out/runs/003-heads_2-seed_7/summary.json"));
}
