#include "addons/cluster/communicator.h"

#include <array>
#include <numeric>

#include "addons/cluster/thread_ranks.h"
#include "catch.h"

using namespace thimble;

namespace {

// The results of a function on each rank.
template <class F>
auto on_ranks(int size, const F& f) {
  std::vector<decltype(f(std::declval<Communicator&>()))> results(static_cast<std::size_t>(size));
  require_success(run_ranks(
      size, [&](Communicator& ranks) { results[static_cast<std::size_t>(ranks.rank())] = f(ranks); }));
  return results;
}

constexpr int kSizes[] = {1, 2, 3, 5, 8};

}  // namespace

TEST_CASE("the parts of ranks are consecutive, and differ by one item at most", "[cluster]") {
  for (const std::size_t count : {0, 1, 4, 7, 100}) {
    for (const int size : kSizes) {
      std::size_t end = 0;
      for (const Range& part : parts_of(count, size)) {
        CHECK(part.first == end);
        CHECK(part.size() >= count / static_cast<std::size_t>(size));
        CHECK(part.size() <= count / static_cast<std::size_t>(size) + 1);
        end = part.last;
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("an all-gather gives every rank the parts of all", "[cluster]") {
  std::vector<int> all(11);
  std::iota(all.begin(), all.end(), 100);
  for (const int size : kSizes) {
    CAPTURE(size);
    const auto everywhere = on_ranks(size, [&](Communicator& ranks) {
      const Range own = ranks.own(all.size());
      std::vector<int> values(all.size());
      for (std::size_t i = own.first; i < own.last; ++i) values[i] = all[i];
      ranks.all_gather(std::span(values));
      return values;
    });
    for (const auto& values : everywhere) CHECK(values == all);
  }
}

TEST_CASE("texts of any length reach all ranks", "[cluster]") {
  for (const int size : kSizes) {
    CAPTURE(size);
    const auto texts = on_ranks(size, [](Communicator& ranks) {
      return ranks.all_texts(std::string(static_cast<std::size_t>(ranks.rank() * 3 % 7), 'x'));
    });
    for (const auto& of_rank : texts)
      for (std::size_t rank = 0; rank < of_rank.size(); ++rank) CHECK(of_rank[rank].size() == rank * 3 % 7);
    const auto copies = on_ranks(size, [](Communicator& ranks) {
      std::string text =
          ranks.rank() == 0 ? "from rank 0" : std::string(static_cast<std::size_t>(ranks.rank()), '?');
      ranks.broadcast(text);
      return text;
    });
    for (const std::string& text : copies) CHECK(text == "from rank 0");
  }
}

TEST_CASE("a condition of one rank is one of all", "[cluster]") {
  for (const int size : kSizes) {
    for (int which = -1; which < size; ++which) {
      const auto found =
          on_ranks(size, [&](Communicator& ranks) { return ranks.any(ranks.rank() == which) ? 1 : 0; });
      CHECK(found == std::vector(static_cast<std::size_t>(size), which >= 0 ? 1 : 0));
    }
  }
}

TEST_CASE("ranks that are equal compare one hash of many texts", "[cluster]") {
  std::array<std::int64_t, 2> messages{};
  run_ranks(2, [&](Communicator& ranks) {
    ranks.require_equal<ConfigError>({{"version", "1.0"}}, "install one");
    const std::int64_t one = ranks.traffic().messages;
    ranks.require_equal<ConfigError>({{"version", "1.0"}, {"config", "a"}, {"data", "b"}}, "install one");
    if (ranks.rank() == 0) messages = {one, ranks.traffic().messages - one};
  });
  CHECK(messages[0] > 0);
  CHECK(messages[0] == messages[1]);
}

TEST_CASE("ranks that differ are named on all ranks, and rank 0 reports", "[cluster]") {
  const auto ends = run_ranks(4, [](Communicator& ranks) {
    ranks.require_equal<ConfigError>({{"version", "1.0"}, {"config", "a"}}, "install one");
    ranks.require_equal<ConfigError>({{"version", "1.0"}, {"config", ranks.rank() % 2 == 0 ? "a" : "b"}},
                                     "use one file");
  });
  for (const RankEnd& end : ends) {
    CHECK(end.error ==
          "config: rank 0 has a, rank 1 has b; ranks 1, 3 differ of 4 from rank 0; use one file");
    CHECK(end.ending.status == 2);
    CHECK(end.ending.has_message == (&end == &ends.front()));
  }
}

TEST_CASE("when a rank fails, the others end with its status and no message", "[cluster]") {
  const auto ends = run_ranks(3, [](Communicator& ranks) {
    require<Error>(ranks.rank() != 1, "disk full");
    ranks.any(false);
  });
  CHECK(ends[1].error == "disk full");
  CHECK(ends[1].ending.has_message);
  for (const std::size_t rank : {0, 2}) {
    CHECK(ends[rank].error == "rank 1 ended with exit status 2");
    CHECK(ends[rank].ending.status == 2);
    CHECK_FALSE(ends[rank].ending.has_message);
  }
}

TEST_CASE("a rank that fails after the others are done gives all its status", "[cluster]") {
  const auto ends = run_ranks(3, [](Communicator& ranks) {
    ranks.any(false);
    require<Error>(ranks.rank() != 0, "disk full");
  });
  for (const RankEnd& end : ends) CHECK(end.ending.status == 2);
  CHECK(ends[0].ending.has_message);
  CHECK_FALSE(ends[1].ending.has_message);
}

TEST_CASE("ranks that do not answer in time are named", "[cluster]") {
  std::atomic<bool> waiting = true;
  const auto ends = run_ranks(4, [&](Communicator& ranks) {
    if (ranks.rank() % 2 == 1) {  // these hang
      while (waiting) std::this_thread::yield();
      return;
    }
    if (ranks.rank() == 0) ranks.set_timeout(0.05);
    try {
      ranks.any(false);
    } catch (const Error&) {
      waiting = false;
      throw;
    }
  });
  CHECK_THAT(ends[0].error, StartsWith("rank 0: no answer from ranks 1, 3 for 0.05 s"));
  CHECK(ends[2].error == "rank 0 ended with exit status 2");
  CHECK(ends[0].ending.has_message);
}

namespace {

// Rank 2 of 3, whose messages and endings arrive as they are set.
class Scripted : public Communicator {
 public:
  Scripted() : Communicator(2, 3) { set_timeout(60); }
  int calls_until_done = 1 << 30;  // of done()
  std::vector<int> waits_for;
  std::vector<std::pair<int, Ending>> arriving;

 protected:
  bool done() override { return --calls_until_done <= 0; }
  std::vector<int> unanswered() const override { return waits_for; }
  std::optional<std::pair<int, Ending>> next_ending() override {
    if (arriving.empty()) return std::nullopt;
    const auto first = arriving.front();
    arriving.erase(arriving.begin());
    return first;
  }
};

}  // namespace

TEST_CASE("a rank that has failed ends a wait for what cannot come any more", "[cluster]") {
  SECTION("its last message arrives just before its ending") {
    Scripted ranks;
    ranks.calls_until_done = 2;
    ranks.waits_for = {0};
    ranks.arriving = {{0, {2, true}}};
    CHECK_NOTHROW(ranks.wait());
  }
  SECTION("another rank answers later") {
    Scripted ranks;
    ranks.calls_until_done = 9;
    ranks.waits_for = {1};
    ranks.arriving = {{0, {2, true}}};
    CHECK_NOTHROW(ranks.wait());
  }
  SECTION("another rank hangs") {
    Scripted ranks;
    ranks.waits_for = {1};
    ranks.arriving = {{0, {3, true}}};
    CHECK_THROWS_WITH(ranks.wait(), "rank 0 ended with exit status 3");
  }
  SECTION("it never answers") {
    Scripted ranks;
    ranks.waits_for = {1, 0};
    ranks.arriving = {{0, {3, true}}};
    CHECK_THROWS_WITH(ranks.wait(), "rank 0 ended with exit status 3");
  }
  SECTION("another rank has given up because of it") {
    Scripted ranks;
    ranks.waits_for = {1};
    ranks.arriving = {{0, {3, true}}, {1, {3, false}}};
    CHECK_THROWS_WITH(ranks.wait(), "rank 0 ended with exit status 3");
  }
}

TEST_CASE("the seconds of all waits add up", "[cluster]") {
  const auto grows = on_ranks(2, [](Communicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks.any(false);
    const double first = ranks.traffic().wait_seconds;
    ranks.wait();  // for nothing
    return ranks.rank() == 1 || (first > 0 && ranks.traffic().wait_seconds >= first) ? 1 : 0;
  });
  CHECK(grows == std::vector{1, 1});
}
