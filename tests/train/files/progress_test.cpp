#include "train/files/progress.h"

#include <algorithm>
#include <stdexcept>

#include "catch.h"
#include "progress_recorder.h"
#include "train/files/thread_pool.h"

using namespace thimble;

TEST_CASE("work reports its share from nothing to the whole, and its end", "[files]") {
  ProgressRecorder recorder;
  {
    ProgressCounter counter("counting", 4);
    counter.advance();
    counter.advance(2);
    counter.advance(5);  // more than was expected
    CHECK(recorder.ends == 0);
  }
  CHECK(recorder.shares == std::vector<double>{0, 0.25, 0.75, 1});
  CHECK(recorder.works == std::vector<std::string>(4, "counting"));
  CHECK(recorder.ends == 1);
}

TEST_CASE("work inside other work is a part of it", "[files]") {
  ProgressRecorder recorder;
  {
    ProgressCounter outer("outer", 2);
    {
      ProgressCounter inner("inner", 1);
      inner.advance();
    }
    outer.advance();
  }
  CHECK(recorder.works == std::vector<std::string>(2, "outer"));
  CHECK(recorder.ends == 1);
  ProgressCounter next("next", 1);
  CHECK(recorder.works.back() == "next");
}

TEST_CASE("work that fails has an end, too", "[files]") {
  ProgressRecorder recorder;
  const auto fail = [] {
    const ProgressCounter counter("failing", 1);
    throw std::runtime_error("planted");
  };
  CHECK_THROWS(fail());
  CHECK(recorder.ends == 1);
  ProgressCounter next("next", 1);
  CHECK(recorder.works.back() == "next");
}

TEST_CASE("nobody has to listen, and work of nothing is done at once", "[files]") {
  {
    ProgressCounter counter("unheard", 1);
    counter.advance();
  }
  ProgressRecorder recorder;
  ProgressCounter counter("nothing", 0);
  counter.advance(0);
  CHECK(recorder.shares == std::vector<double>{0, 1});
}

TEST_CASE("threads advance one after the other", "[files]") {
  constexpr std::int64_t kItems = 1000;
  ProgressRecorder recorder;
  ThreadPool pool(4);
  ProgressCounter counter("sharing", kItems);
  pool.run(kItems, [&](std::int64_t, int) { counter.advance(); });
  REQUIRE(recorder.shares.size() == kItems + 1);
  CHECK(std::ranges::is_sorted(recorder.shares));
  CHECK(recorder.shares.back() == 1);
}
