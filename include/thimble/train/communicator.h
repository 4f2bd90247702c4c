// Communication between ranks: processes that train one model together, numbered from 0.
//
// An implementation moves bytes from rank to rank; everything else is built on that. No function hangs: a wait
// ends with an error when another rank has failed, or when ranks do not answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/train/stopwatch.h"

namespace thimble {

// The items first .. last-1 of a sequence.
struct Range {
  std::size_t first = 0, last = 0;
  std::size_t size() const { return last - first; }
  bool contains(std::size_t i) const { return first <= i && i < last; }
};

// Returns the items of `count` that belong to a rank. Ranks have consecutive items, and as many, give or take
// one.
Range part_of(std::size_t count, int rank, int size);
std::vector<Range> parts_of(std::size_t count, int size);  // returns those of every rank

// How a rank ended, as an exit status.
struct Ending {
  int status = 0;
  bool has_message = false;  // false where the status is that of another rank
};

// Thrown while a rank waits for others, when one of them has ended with an error, which it reports itself.
class PeerError : public Error {
 public:
  PeerError(int rank, int status)
      : Error(fmt::format("rank {} ended with exit status {}", rank, status)), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// Communication between this rank and the others. Functions that all ranks must call are collective.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns the element of this rank.
  template <class T>
  const T& own(const std::vector<T>& by_rank) const {
    return by_rank[static_cast<std::size_t>(rank_)];
  }

  // Returns the threads of this rank for a config's train.threads; 0 there means all cores, which ranks on one
  // machine share. The result may be 0.
  std::int64_t threads(std::int64_t requested) const { return requested > 0 ? requested : cores_; }

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
    static_assert(std::is_trivially_copyable_v<T>);
    start_gather(std::as_writable_bytes(values), sizeof(T), parts, {});
  }
  // Collective: copies the part of `values` that belongs to each rank to all ranks, or to rank 0.
  template <class T>
  void all_gather(std::span<T> values, std::span<const Range> parts) {
    start_all_gather(values, parts);
    wait();
  }
  template <class T>
  void gather(std::span<T> values, std::span<const Range> parts) {
    start_gather(std::as_writable_bytes(values), sizeof(T), parts, 0);
    wait();
  }
  // Collective: returns the texts of all ranks.
  std::vector<std::string> all_gather(const std::string& text);
  // Collective: copies the values, or the text, of rank 0 to all ranks.
  template <class T>
  void broadcast(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(std::as_writable_bytes(values));
  }
  void broadcast(std::string& text);
  // Collective: returns whether the condition holds on any rank.
  bool any(bool condition);
  // Collective: throws E, on all ranks, if the texts of two ranks differ. The message names those that differ
  // from rank 0, and ends in `remedy`.
  template <class E>
  void require_equal(const char* what, const std::string& text, const char* remedy) {
    const std::string difference = difference_of(what, text);
    require<E>(difference.empty(), "{}; {}", difference, remedy);
  }

  // Collective: ends the communication. Ranks that do not take part within seconds after an error are given
  // up. Returns the status that all ranks end with, and whether this rank reports its error: of several that
  // failed, only the first does.
  Ending end(Ending mine);

  // What was sent, and the time that was spent in wait().
  struct Traffic {
    double wait_seconds = 0;
    std::int64_t bytes = 0, messages = 0;
  };
  const Traffic& traffic() const { return traffic_; }
  void set_timeout(double seconds) { timeout_ = seconds; }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

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

  std::int64_t cores_ = 0;

 private:
  void start_gather(std::span<std::byte> bytes, std::size_t size, std::span<const Range> parts,
                    std::optional<int> to);
  void broadcast_bytes(std::span<std::byte> bytes);
  std::string difference_of(const char* what, const std::string& text);
  void receive_endings();
  void require_answers(double seconds);  // throws as wait() does

  static constexpr double kTimeout = 300;  // seconds, more than a checkpoint on a slow disk takes
  const int rank_, size_;
  double timeout_ = kTimeout;
  Traffic traffic_;
  std::optional<Stopwatch> since_failure_;  // of another rank, seen in wait()
  std::vector<std::optional<Ending>> endings_ =
      std::vector<std::optional<Ending>>(static_cast<std::size_t>(size_));
};

// Returns the communicator of a process that is alone.
Communicator& one_process();

}  // namespace thimble
