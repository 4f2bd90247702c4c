#include "addons/cluster/communicator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "thimble/engine/error.h"
#include "train/files/hash.h"

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

}  // namespace

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
      "rank {}: no answer from {} for {:g} s; resume the run with --resume; if those ranks were only slow, set the seconds to wait with THIMBLE_RANK_TIMEOUT",
      rank(), seconds < timeout_ ? "" : ranks_text(unanswered()), timeout_);
}

void Communicator::start_gather(std::span<std::byte> bytes, std::size_t size, std::span<const Range> parts) {
  const auto part = [&](int rank) {
    const Range& items = parts[static_cast<std::size_t>(rank)];
    return bytes.subspan(items.first * size, items.size() * size);
  };
  // Each rank starts with the next one, so that they do not all send to the same rank at once.
  for (int i = 1; i < this->size(); ++i) {
    const int from = (rank() + this->size() - i) % this->size(), next = (rank() + i) % this->size();
    receive(from, part(from));
    send(next, part(rank()));
  }
}

void Communicator::gather_items(std::span<std::byte> items, std::size_t size) {
  start_gather(items, size, parts_of(items.size() / size, this->size()));
  wait();
}

std::vector<std::string> Communicator::all_texts(const std::string& text) {
  std::vector<std::size_t> lengths(static_cast<std::size_t>(size()));
  lengths[static_cast<std::size_t>(rank())] = text.size();
  all_gather(std::span(lengths));
  std::vector<Range> parts;
  std::size_t end = 0;
  for (const std::size_t length : lengths) {
    parts.push_back({end, end + length});
    end += length;
  }
  std::string all(end, '\0');
  text.copy(all.data() + own_of(parts).first, text.size());
  start_all_gather(std::span(all), parts);
  wait();
  std::vector<std::string> texts;
  for (const Range& part : parts) texts.push_back(all.substr(part.first, part.size()));
  return texts;
}

void Communicator::broadcast_bytes(std::span<std::byte> bytes) {
  std::vector<Range> parts(static_cast<std::size_t>(size()));
  parts.front() = {0, bytes.size()};
  start_gather(bytes, 1, parts);
  wait();
}

bool Communicator::any(bool condition) {
  std::vector<char> conditions(static_cast<std::size_t>(size()));
  conditions[static_cast<std::size_t>(rank())] = condition ? 1 : 0;
  all_gather(std::span(conditions));
  return std::ranges::count(conditions, 0) != size();
}

std::string Communicator::difference_of(const std::vector<Shared>& shared) {
  std::string all;
  for (const Shared& item : shared) all.append(item.text).push_back('\0');
  const std::vector<std::string> hashes = all_texts(hash_digits(all));
  if (std::ranges::count(hashes, hashes[0]) == size()) return "";
  for (const Shared& item : shared) {
    const std::vector<std::string> texts = all_texts(item.text);
    std::vector<int> differing;
    for (int rank = 1; rank < size(); ++rank)
      if (texts[static_cast<std::size_t>(rank)] != texts[0]) differing.push_back(rank);
    if (differing.empty()) continue;
    return fmt::format("{}: rank 0 has {}, rank {} has {}; {} of {} from rank 0", item.what, texts[0],
                       differing.front(), texts[static_cast<std::size_t>(differing.front())],
                       ranks_text(differing) + (differing.size() == 1 ? " differs" : " differ"), size());
  }
  throw Error(
      "ranks have the same texts and other hashes of them: a rank or the network has computed wrongly");
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
  endings_[static_cast<std::size_t>(rank())] = mine;
  for (int i = 1; i < size(); ++i) send_ending((rank() + i) % size(), mine);
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
  const bool reports = first - endings_.begin() == rank();
  // The first of the others to leave may end all ranks that are left, so the one that reports goes ahead.
  if (!reports && !all_ended()) std::this_thread::sleep_for(std::chrono::seconds(1));
  return {(*first)->status, reports};
}

}  // namespace thimble
