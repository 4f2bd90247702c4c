// Claims on runs, so that processes on one machine or on several that share a file system divide a sweep.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "program/sweep/run_queue.h"

namespace thimble {

// A claim of this process on a name, held for the lifetime of the object: the file NAME.claim-N, of which the
// one with the highest N counts. It is created with O_EXCL, which is atomic on network file systems too. A
// claim ends when its holder releases it or, on the holder's machine, ends. On other machines it ends when it
// has not been renewed for the time of a lease, by the clock of the file system. It is then replaced by N+1, so
// that one of several processes takes it over.
class Claim : public TakenRun {
 public:
  // Claims the name; returns nullptr while another process holds it. `lease` in seconds, the same in every
  // process. Throws FileError when the file cannot be written.
  static std::unique_ptr<Claim> take(const std::filesystem::path& name, double lease);
  ~Claim() override;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Starts the lease anew; returns whether this is still the claim that counts.
  bool renew() override;

 private:
  Claim(std::filesystem::path name, int number, int descriptor);
  std::filesystem::path file() const;

  const std::filesystem::path name_;
  const int number_, descriptor_;
  bool counts_ = false;
};

// Returns the holder of a name's claim, "process 123 on host"; "" if nobody holds one.
std::string claim_holder(const std::filesystem::path& name, double lease);

}  // namespace thimble
