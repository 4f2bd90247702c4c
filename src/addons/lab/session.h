// An open run of the lab.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/dataset.h"
#include "thimble/train/json.h"
#include "thimble/train/ranks.h"
#include "thimble/train/safetensors.h"
#include "train/step/cost.h"

namespace thimble::lab {

// How a session opens its run.
struct SessionOptions {
  std::filesystem::path directory;  // of the run; empty: none
  bool resume = false;              // go on with the run in the directory
  bool shards_only = false;         // only computes shards: records, evaluates and writes nothing
  std::shared_ptr<const SafetensorsFile>
      weights{};                        // of a trained model without a run, which cannot be trained
  std::vector<std::string> warnings{};  // for the user, in the answer
};

// A model that is trained step by step, evaluated and inspected. The functions throw as those of the library
// that they call, and leave the session as it was then. README.md states the JSON of each.
class Session {
 public:
  virtual ~Session() = default;

  virtual const OpenConfig& config() const = 0;
  virtual Json describe() = 0;

  // Makes steps until so many milliseconds have passed or so many are made, at least one.
  virtual Json step(double milliseconds, std::int64_t steps) = 0;
  // The halves of a step whose shards several instances compute.
  virtual void compute(const Range& shards) = 0;
  virtual Json update() = 0;
  // Returns where the shards are in memory: [{"gradients": [address, bytes], "sums": [address, bytes]}].
  virtual Json buffers() = 0;

  virtual Json evaluate(Split split, std::int64_t limit) = 0;
  virtual Json examples(Split split, std::int64_t first, std::int64_t count) = 0;
  virtual Json trace(const Json& request) = 0;
  virtual Json scores(const Json& at) = 0;
  virtual Json ablate(const std::string& heads, std::int64_t sequences, const Json& at) = 0;
  virtual Json inspect(std::int64_t sequences) = 0;
  virtual Json history() const = 0;
  virtual Json hash() const = 0;
  virtual void checkpoint() = 0;  // writes one, so that the run can be resumed
  // Moves the history of a session of the same run and precision into this one.
  virtual void take_history(Session& from) = 0;
};

// Opens a session that computes in the precision R, float or double.
template <class R>
std::unique_ptr<Session> make_session(const OpenConfig& config, const SessionOptions& options);

}  // namespace thimble::lab
