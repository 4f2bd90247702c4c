#include <chrono>
#include <filesystem>
#include <thread>

#include "addons/cluster/claim.h"
#include "catch.h"
#include "program/sweep/run_sweep.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/files/temporary_directory.h"
#include "train/runs/hand_made_run.h"

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
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", program = directory / "program";
  write_file(directory / "base.yaml", "model: {d_model: 32}\n");
  write_file(directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8]\n");
  const Sweep sweep = load_sweep((directory / "s.yaml").string());
  const std::vector<SweepRun> planned = plan_runs(sweep);
  // In place of thimble.
  write_file(program,
             "#!/bin/sh\nwhile [ \"$1\" != --out ]; do shift; done\n"
             "mkdir -p \"$2\" && cp \"${2%/out/*}/${2##*/}\" \"$2/summary.json\"\n");
  fs::permissions(program, fs::perms::owner_all);
  for (const SweepRun& run : planned)
    write_file(directory / run.name, summary_text({{"steps", 5}, {"weights_hash", "of 5"}}, run.identity));
  ShortLease queue;
  fs::create_directories(out / "runs");
  write_file(out / "sweep.json", json_text(sweep_json(sweep, planned, "out")));
  const std::string elsewhere = "process 1 on elsewhere\n0-0-0-0\n1\n";
  write_file(out / "runs/001-heads_1-seed_7.claim-1", elsewhere);
  write_file(out / "runs/003-heads_2-seed_7.claim-1", elsewhere);
  std::thread other([&] {  // finishes the first of them, and never renews the second
    while (!fs::exists(out / "runs/004-heads_2-seed_8/summary.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fs::create_directories(out / "runs" / planned[0].name);
    write_file(
        out / "runs" / planned[0].name / "summary.json",
        summary_text({{"steps", 9}, {"target_missed", true}, {"weights_hash", "of 9"}}, planned[0].identity));
  });
  const SweepResult result = run_sweep(sweep, {.directory = out, .program = program});
  other.join();
  CHECK(result.runs[0].status == RunStatus::missed_target);
  for (const std::size_t i : {1U, 2U, 3U}) CHECK(result.runs[i].status == RunStatus::done);
  CHECK(result.runs[0].result["steps"] == 9);
  CHECK(parse_json(read_file(out / "sweep.json"))["settings"][0]["runs"][0]["result"]["steps"] == 9);
  CHECK(fs::exists(out / "runs/003-heads_2-seed_7/summary.json"));
}
