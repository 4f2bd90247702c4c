#include "train/files/thread_pool.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

TEST_CASE("a loop visits every item once, whatever the threads", "[files]") {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    std::vector<int> visits(20);
    for (int loop = 0; loop < 3000; ++loop) {
      const std::size_t n = static_cast<std::size_t>(loop) % (visits.size() + 1);
      std::ranges::fill(visits, 0);
      pool.run(static_cast<std::int64_t>(n),
               [&](std::int64_t i, int) { ++visits[static_cast<std::size_t>(i)]; });
      for (std::size_t i = 0; i < visits.size(); ++i) REQUIRE(visits[i] == (i < n ? 1 : 0));
    }
  }
}

TEST_CASE("items of one thread number never overlap in time", "[files]") {
  ThreadPool pool(4);
  std::vector<std::int64_t> sums(4);  // plain numbers: two items at once on one of them would lose additions
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> overlaps = 0, strangers = 0;
  for (int loop = 0; loop < 200; ++loop) {
    pool.run(100, [&](std::int64_t i, int thread) {
      if (thread < 0 || thread >= pool.threads()) return void(++strangers);
      const auto t = static_cast<std::size_t>(thread);
      if (inside[t].fetch_add(1) != 0) ++overlaps;
      sums[t] += i;
      inside[t].fetch_sub(1);
    });
  }
  CHECK(strangers == 0);
  CHECK(overlaps == 0);
  CHECK(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}) == 200 * 99 * 100 / 2);
}

TEST_CASE("the items of a loop really run on several threads at once", "[files]") {
  ThreadPool pool(3);
  std::set<std::thread::id> ids;
  std::mutex mutex;
  std::atomic<int> waiting = 0;
  pool.run(3, [&](std::int64_t, int) {
    ++waiting;
    while (waiting < 3) std::this_thread::yield();  // ends only if three threads are here together
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(ids.size() == 3);
  CHECK(ids.count(std::this_thread::get_id()) == 1);
}

TEST_CASE("a thread that sleeps on its item does not hold up the others", "[files]") {
  ThreadPool pool(2);
  std::atomic<bool> last_done = false;
  std::atomic<bool> timed_out = false;
  pool.run(50, [&](std::int64_t i, int) {
    if (i == 49) last_done = true;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (i == 0 && !last_done) {
      if (std::chrono::steady_clock::now() > limit) return void(timed_out = true);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  CHECK_FALSE(timed_out);
}

TEST_CASE("what a loop wrote is seen by its caller and by the next loop", "[files]") {
  ThreadPool pool(4);
  std::vector<std::int64_t> values(64, 1);
  for (int loop = 0; loop < 500; ++loop) {
    pool.run(64, [&](std::int64_t i, int) { values[static_cast<std::size_t>(63 - i)] += loop; });
    for (std::int64_t& value : values) value -= loop;
  }
  CHECK(values == std::vector<std::int64_t>(64, 1));
}

TEST_CASE("the exception of the smallest item is thrown on, after the whole loop", "[files]") {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (int loop = 0; loop < 200; ++loop) {
      std::atomic<int> visited = 0;
      std::string message = "nothing was thrown";
      try {
        pool.run(40, [&](std::int64_t i, int) {
          ++visited;
          if (i % 7 == 3) throw DataError("item " + std::to_string(i));
        });
      } catch (const DataError& e) {
        message = e.what();
      }
      REQUIRE(message == "item 3");
      REQUIRE(visited == 40);
    }
    std::atomic<int> visited = 0;
    pool.run(5, [&](std::int64_t, int) { ++visited; });  // the failure is forgotten
    CHECK(visited == 5);
  }
}

TEST_CASE("a pool without a number of threads takes what the process may use", "[files]") {
  CHECK(ThreadPool(0).threads() >= 1);
  CHECK(ThreadPool(0).threads() <= static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  CHECK(ThreadPool(1).threads() == 1);
}

TEST_CASE("a loop of no items calls nothing, one of a negative number is refused", "[files]") {
  ThreadPool pool(2);
  bool called = false;
  const auto call = [&](std::int64_t, int) { called = true; };
  pool.run(0, call);
  CHECK_THROWS_AS(pool.run(-1, call), Error);
  CHECK_FALSE(called);
}

TEST_CASE("a pool can end at any time, used or not", "[files]") {
  std::atomic<int> visited = 0;
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(3);
    pool.run(i % 3, [&](std::int64_t, int) { ++visited; });
  }
  CHECK(visited == 199);
}

TEST_CASE("of two failures that of the earlier item is told, whichever came first", "[files]") {
  ThreadPool pool(2);
  std::atomic<bool> second_fails = false;
  const auto fail = [&](std::int64_t item, int) {
    if (item == 1) {
      second_fails = true;
      throw Error("the second");
    }
    while (!second_fails) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw Error("the first");
  };
  CHECK_THROWS_WITH(pool.run(2, fail), "the first");
}
