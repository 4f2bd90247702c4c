#include "train/files/text/format.h"

#include <limits>

#include "catch.h"

using namespace thimble;

TEST_CASE("a number has all digits of an integer and a few of any other", "[files]") {
  CHECK(format_number(12500) == "12500");
  CHECK(format_number(-3) == "-3");
  CHECK(format_number(1.0 / 3) == "0.3333");
  CHECK(format_number(1.0 / 3, 6) == "0.333333");
  CHECK(format_number(1e8) == "1e+08");
  CHECK(format_number(std::numeric_limits<double>::infinity()) == "never");
  CHECK(format_number(std::numeric_limits<double>::quiet_NaN()) == "-");
}

TEST_CASE("a noun follows its number", "[files]") {
  CHECK(counted(0, "problem") == "0 problems");
  CHECK(counted(1, "problem") == "1 problem");
  CHECK(counted(12, "more line") == "12 more lines");
}

TEST_CASE("bytes are given in a unit that people read", "[files]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(3.25 * (1 << 30)) == "3.2 GiB");
  CHECK(format_bytes(5e24) == "4336808.7 EiB");
}

TEST_CASE("a duration is given in the two largest units", "[files]") {
  CHECK(format_duration(0.4) == "0 s");
  CHECK(format_duration(59.4) == "59 s");
  CHECK(format_duration(59.5) == "1 min 00 s");
  CHECK(format_duration(3599) == "59 min 59 s");
  CHECK(format_duration(7380) == "2 h 03 min");
}
