// Registers the queue of sweeps whose processes run on several machines, or as jobs of Slurm.
#include "addons/cluster/claim.h"
#include "addons/cluster/slurm.h"

namespace thimble {

namespace {

class ClusterQueue : public RunQueue {
 public:
  ClusterQueue() { set_run_queue(*this); }

  std::unique_ptr<TakenRun> take(const std::filesystem::path& run) override {
    return Claim::take(run, lease());
  }
  std::string holder(const std::filesystem::path& run) override { return claim_holder(run, lease()); }
  std::string submitted(const std::filesystem::path& directory) override { return slurm_state(directory); }
  Submission submit(const Sweep& sweep, const SweepOptions& options, const SubmitOptions& submit) override {
    return submit_sweep(sweep, options, submit);
  }
};

ClusterQueue registered;

}  // namespace

}  // namespace thimble
