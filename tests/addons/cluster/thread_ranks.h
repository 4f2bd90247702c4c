// Ranks that are threads of the test program, in place of processes.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "addons/cluster/communicator.h"

// The messages on their way between ranks.
struct Mailbox {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> messages;  // by sender and receiver
  std::map<int, std::deque<std::pair<int, thimble::Ending>>> endings;          // by receiver
};

class ThreadRank : public thimble::Communicator {
 public:
  ThreadRank(Mailbox& mailbox, int rank, int size) : Communicator(rank, size), mailbox_(mailbox) {}

 protected:
  void start_send(int to, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mailbox_.mutex);
    mailbox_.messages[{rank(), to}].emplace_back(bytes.begin(), bytes.end());
  }
  void start_receive(int from, std::span<std::byte> bytes) override { pending_.push_back({from, bytes}); }
  bool done() override {
    const std::lock_guard lock(mailbox_.mutex);
    // A message goes to the first receive from its sender.
    for (auto receive = pending_.begin(); receive != pending_.end();) {
      auto& queue = mailbox_.messages[{receive->from, rank()}];
      if (queue.empty()) {
        ++receive;
        continue;
      }
      if (queue.front().size() != receive->bytes.size())
        throw std::logic_error("a message and the bytes to receive it differ in size");
      std::ranges::copy(queue.front(), receive->bytes.begin());
      queue.pop_front();
      receive = pending_.erase(receive);
    }
    return pending_.empty();
  }
  void cancel() override { pending_.clear(); }
  std::vector<int> unanswered() const override {
    std::vector<int> ranks;
    for (const Receive& receive : pending_) ranks.push_back(receive.from);
    return ranks;
  }
  void send_ending(int to, thimble::Ending ending) override {
    const std::lock_guard lock(mailbox_.mutex);
    mailbox_.endings[to].push_back({rank(), ending});
  }
  std::optional<std::pair<int, thimble::Ending>> next_ending() override {
    const std::lock_guard lock(mailbox_.mutex);
    auto& queue = mailbox_.endings[rank()];
    if (queue.empty()) return std::nullopt;
    const auto first = queue.front();
    queue.pop_front();
    return first;
  }

 private:
  struct Receive {
    int from;
    std::span<std::byte> bytes;
  };
  Mailbox& mailbox_;
  std::deque<Receive> pending_;
};

// How a rank of run_ranks() ended: what it threw, if anything, and what Communicator::end() returned.
struct RankEnd {
  std::string error;
  thimble::Ending ending;
};

// Calls f(communicator) on as many ranks, as main() runs the program, and returns how each ended.
template <class F>
std::vector<RankEnd> run_ranks(int size, const F& f) {
  Mailbox mailbox;
  std::vector<RankEnd> ends(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank ranks(mailbox, rank, size);
      ranks.set_timeout(60);
      RankEnd& end = ends[static_cast<std::size_t>(rank)];
      thimble::Ending mine;
      try {
        f(ranks);
      } catch (const thimble::PeerError& e) {
        mine = {e.status(), false};
        end.error = e.what();
      } catch (const std::exception& e) {
        mine = {2, true};
        end.error = e.what();
      }
      end.ending = ranks.end(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

// Requires that no rank failed.
inline void require_success(const std::vector<RankEnd>& ends) {
  for (std::size_t rank = 0; rank < ends.size(); ++rank)
    if (!ends[rank].error.empty())
      throw std::logic_error("rank " + std::to_string(rank) + ": " + ends[rank].error);
}
