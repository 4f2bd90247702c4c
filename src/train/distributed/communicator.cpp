#include "thimble/train/communicator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "thimble/train/stopwatch.h"

namespace thimble {

namespace {

// Lets other threads and processes run: yields at first, which costs no time where a core is free, and then
// sleeps.
void pause(int round) {
  constexpr int kYields = 1000;
  constexpr auto kNap = std::chrono::microseconds(50);
  if (round < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

std::string ranks_text(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

class OneProcess : public Communicator {
 public:
  OneProcess() : Communicator(0, 1) {}
};

}  // namespace

Range part_of(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(size);
  return {count * r / n, count * (r + 1) / n};
}

std::vector<Range> parts_of(std::size_t count, int size) {
  std::vector<Range> parts;
  for (int rank = 0; rank < size; ++rank) parts.push_back(part_of(count, rank, size));
  return parts;
}

void Communicator::send(int to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  traffic_.bytes += std::ssize(bytes);
  ++traffic_.messages;
  start_send(to, bytes);
}

void Communicator::receive(int from, std::span<std::byte> bytes) {
  if (!bytes.empty()) start_receive(from, bytes);
}

void Communicator::wait() {
  if (size_ == 1) return;
  const Stopwatch timer;
  for (int round = 0; !done(); ++round) {
    try {
      require_answers(timer.seconds());
    } catch (...) {
      cancel();
      throw;
    }
    pause(round);
  }
  traffic_.wait_seconds += timer.seconds();
}

void Communicator::require_answers(double seconds) {
  receive_endings();
  const auto failed =
      std::ranges::find_if(endings_, [](const auto& ending) { return ending && ending->has_message; });
  if (failed != endings_.end() && !done()) {
    // What the failed rank has sent before may be here now, and others may still send theirs.
    constexpr double kGrace = 1;  // seconds
    if (!since_failure_) since_failure_.emplace();
    const auto has_ended = [&](int rank) { return endings_[static_cast<std::size_t>(rank)].has_value(); };
    if (std::ranges::any_of(unanswered(), has_ended) || since_failure_->seconds() > kGrace)
      throw PeerError(static_cast<int>(failed - endings_.begin()), (*failed)->status);
  }
  require<Error>(
      seconds < timeout_,
      "rank {}: no answer from {} for {:g} s; resume the run with --resume; if those ranks were only "
      "slow, set the seconds to wait with THIMBLE_RANK_TIMEOUT",
      rank_, seconds < timeout_ ? "" : ranks_text(unanswered()), timeout_);
}

void Communicator::start_gather(std::span<std::byte> bytes, std::size_t size, std::span<const Range> parts,
                                std::optional<int> to) {
  const auto part = [&](int rank) {
    const Range& items = parts[static_cast<std::size_t>(rank)];
    return bytes.subspan(items.first * size, items.size() * size);
  };
  // Each rank starts with the next one, so that they do not all send to the same rank at once.
  for (int i = 1; i < size_; ++i) {
    const int from = (rank_ + size_ - i) % size_, next = (rank_ + i) % size_;
    if (!to || *to == rank_) receive(from, part(from));
    if (!to || *to == next) send(next, part(rank_));
  }
}

std::vector<std::string> Communicator::all_gather(const std::string& text) {
  const std::vector<Range> ranks = parts_of(static_cast<std::size_t>(size_), size_);
  std::vector<std::size_t> lengths(ranks.size());
  lengths[static_cast<std::size_t>(rank_)] = text.size();
  all_gather(std::span(lengths), ranks);
  std::vector<Range> parts;
  std::size_t end = 0;
  for (const std::size_t length : lengths) {
    parts.push_back({end, end + length});
    end += length;
  }
  std::string all(end, '\0');
  text.copy(all.data() + parts[static_cast<std::size_t>(rank_)].first, text.size());
  all_gather(std::span(all), parts);
  std::vector<std::string> texts;
  for (const Range& part : parts) texts.push_back(all.substr(part.first, part.size()));
  return texts;
}

void Communicator::broadcast_bytes(std::span<std::byte> bytes) {
  std::vector<Range> parts(static_cast<std::size_t>(size_));
  parts.front() = {0, bytes.size()};
  all_gather(bytes, parts);
}

void Communicator::broadcast(std::string& text) {
  std::size_t length = text.size();
  broadcast(std::span(&length, 1));
  text.resize(length);
  broadcast(std::span(text));
}

bool Communicator::any(bool condition) {
  if (size_ == 1) return condition;
  std::vector<char> conditions(static_cast<std::size_t>(size_));
  conditions[static_cast<std::size_t>(rank_)] = condition ? 1 : 0;
  all_gather(std::span(conditions), parts_of(conditions.size(), size_));
  return std::ranges::count(conditions, 0) != size_;
}

std::string Communicator::difference_of(const char* what, const std::string& text) {
  if (size_ == 1) return "";
  const std::vector<std::string> texts = all_gather(text);
  std::vector<int> differing;
  for (int rank = 1; rank < size_; ++rank)
    if (texts[static_cast<std::size_t>(rank)] != texts[0]) differing.push_back(rank);
  if (differing.empty()) return "";
  return fmt::format("{}: rank 0 has {}, rank {} has {}; {} of {} from rank 0", what, texts[0],
                     differing.front(), texts[static_cast<std::size_t>(differing.front())],
                     ranks_text(differing) + (differing.size() == 1 ? " differs" : " differ"), size_);
}

void Communicator::receive_endings() {
  while (const auto found = next_ending()) endings_[static_cast<std::size_t>(found->first)] = found->second;
}

bool Communicator::all_ended() const {
  return std::ranges::all_of(endings_, [](const auto& ending) { return ending.has_value(); });
}

Ending Communicator::end(Ending mine) {
  constexpr double kGrace = 5;  // seconds
  cancel();
  endings_[static_cast<std::size_t>(rank_)] = mine;
  for (int i = 1; i < size_; ++i) send_ending((rank_ + i) % size_, mine);
  const auto failed = [](const auto& ending) { return ending && ending->status != 0; };
  const Stopwatch timer;
  for (int round = 0; !all_ended(); ++round) {
    receive_endings();
    if (timer.seconds() > (std::ranges::any_of(endings_, failed) ? std::min(kGrace, timeout_) : timeout_))
      break;
    pause(round);
  }
  const auto first =
      std::ranges::find_if(endings_, [](const auto& ending) { return ending && ending->has_message; });
  if (first == endings_.end()) return mine;
  const bool reports = first - endings_.begin() == rank_;
  // The first of the others to leave may end all ranks that are left, so the one that reports goes ahead.
  if (!reports && !all_ended()) std::this_thread::sleep_for(std::chrono::seconds(1));
  return {(*first)->status, reports};
}

Communicator& one_process() {
  static OneProcess process;
  return process;
}

}  // namespace thimble
