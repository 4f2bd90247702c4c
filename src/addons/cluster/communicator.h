// Communication between ranks.
//
// An implementation moves bytes from rank to rank; everything else is built on that. No function hangs: a wait
// ends with an error when another rank has failed, or when ranks do not answer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/cli/cluster.h"
#include "thimble/train/ranks.h"
#include "train/files/stopwatch.h"

namespace thimble {

// Returns the items of `count` that belong to each rank.
std::vector<Range> parts_of(std::size_t count, int size);

// Communication between this rank and the others. Functions that all ranks must call are collective.
class Communicator : public Ranks {
 public:
  // Returns the element of this rank.
  template <class T>
  const T& own_of(const std::vector<T>& by_rank) const {
    return by_rank[static_cast<std::size_t>(rank())];
  }

  // Start to send bytes, and to receive as many as the other rank sends, in the order in which it starts. The
  // bytes must stay in place until wait() returns or throws; no bytes make no message.
  void send(int to, std::span<const std::byte> bytes);
  void receive(int from, std::span<std::byte> bytes);
  // Makes progress with the messages that were started, which some networks need between send() and wait().
  void poll() { done(); }
  // Waits for all messages that were started. Throws PeerError when another rank has failed and the messages
  // cannot come, as their ranks have ended too, or have not come a second later; Error, naming the ranks, when
  // they are not there after the timeout.
  void wait();

  // Collective: starts to copy the part of `values` that belongs to each rank to all ranks.
  template <class T>
  void start_all_gather(std::span<T> values, std::span<const Range> parts) {
    start_gather(std::as_writable_bytes(values), sizeof(T), parts);
  }
  // Collective: returns the texts of all ranks.
  std::vector<std::string> all_texts(const std::string& text);
  bool any(bool condition) override;
  std::unique_ptr<f32::GradientSum> gradient_sum(const f32::SumSizes&) override;
  std::unique_ptr<f64::GradientSum> gradient_sum(const f64::SumSizes&) override;

  // Collective: ends the communication. Ranks that do not take part within seconds after an error are given
  // up. Returns the status that all ranks end with, and whether this rank reports its error: of several that
  // failed, only the first does.
  Ending end(Ending mine);

  void set_timeout(double seconds) { timeout_ = seconds; }

 protected:
  Communicator(int rank, int size) : Ranks(rank, size) {}

  void gather_items(std::span<std::byte> items, std::size_t size) override;
  void broadcast_bytes(std::span<std::byte> bytes) override;
  std::string difference_of(const std::vector<Shared>& shared) override;

  virtual void start_send(int, std::span<const std::byte>) {}
  virtual void start_receive(int, std::span<std::byte>) {}
  virtual bool done() { return true; }                        // makes progress
  virtual void cancel() {}                                    // gives up all messages that are not done
  virtual std::vector<int> unanswered() const { return {}; }  // ranks with messages that are not done
  virtual void send_ending(int /*to*/, Ending) {}             // must not wait for the other rank
  virtual std::optional<std::pair<int, Ending>> next_ending() {
    return {};
  }  // rank and ending, if one is here
  bool all_ended() const;

 private:
  void start_gather(std::span<std::byte> bytes, std::size_t size, std::span<const Range> parts);
  void receive_endings();
  void require_answers(double seconds);  // throws as wait() does

  static constexpr double kTimeout = 300;  // seconds, more than a checkpoint on a slow disk takes
  double timeout_ = kTimeout;
  std::optional<Stopwatch> since_failure_;  // of another rank, seen in wait()
  std::vector<std::optional<Ending>> endings_ =
      std::vector<std::optional<Ending>>(static_cast<std::size_t>(size()));
};

}  // namespace thimble
