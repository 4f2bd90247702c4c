#include "thimble/engine/profile.h"

#include <chrono>
#include <thread>

#include "catch.h"

using namespace thimble;

namespace {

void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TEST_CASE("spans of one name add up, and what lies between them is nobody's", "[core]") {
  Profile profile;
  profile.stop();  // nothing runs
  for (int i = 0; i < 2; ++i) {
    profile.start("slow");
    pause_ms(20);
    profile.start("fast");
    profile.stop();
    pause_ms(20);
  }
  REQUIRE(profile.spans().size() == 2);
  const Profile::Span &slow = profile.spans()[0], &fast = profile.spans()[1];
  CHECK(slow.name == "slow");
  CHECK((slow.count == 2 && fast.count == 2));
  CHECK(slow.seconds >= 0.04);
  CHECK(fast.seconds < slow.seconds);

  Profile sum;
  sum.start("fast");
  sum.stop();
  const double before = sum.spans()[0].seconds;
  sum.add(profile);
  CHECK(sum.spans().size() == 2);
  CHECK(sum.spans()[0].name == "fast");
  CHECK(sum.spans()[0].count == 3);
  CHECK(sum.spans()[0].seconds == before + fast.seconds);
}
