// The dates task, compared with dates that are counted day by day and written from labeled pieces.
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "catch.h"
#include "samples.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

const TaskConfig kDates{.name = "dates"};

const std::vector<std::string> kMonths = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
const std::vector<std::string> kWeek = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};

// A way to write a date: for each character what it is, d(ay), m(onth), y(ear) or something else.
struct WrittenDate {
  std::string text, parts;
  WrittenDate& add(const std::string& piece, char part) {
    text += piece;
    parts += std::string(piece.size(), part);
    return *this;
  }
};

struct Day {
  int year = 1970, month = 1, day = 1;
  std::size_t weekday = 3;  // that day was a Thursday

  void next() {
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const int days[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    weekday = (weekday + 1) % 7;
    if (++day <= days[month - 1]) return;
    day = 1;
    if (++month <= 12) return;
    month = 1;
    ++year;
  }

  static std::string two(int number) {
    return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
  }
  std::string iso() const { return std::to_string(year) + "-" + two(month) + "-" + two(day); }

  std::vector<WrittenDate> ways() const {
    const std::string name = kMonths[static_cast<std::size_t>(month - 1)];
    const std::string d = std::to_string(day), y = std::to_string(year), yy = y.substr(2);
    const std::string th = day == 1 || day == 21 || day == 31 ? "st"
                           : day == 2 || day == 22            ? "nd"
                           : day == 3 || day == 23            ? "rd"
                                                              : "th";
    return {WrittenDate().add(d, 'd').add("_", ' ').add(name, 'm').add("_", ' ').add(y, 'y'),
            WrittenDate().add(name, 'm').add("_", ' ').add(d, 'd').add(",_", ' ').add(y, 'y'),
            WrittenDate().add(d, 'd').add(th + "_of_", ' ').add(name, 'm').add("_", ' ').add(y, 'y'),
            WrittenDate()
                .add(kWeek[weekday] + "_", ' ')
                .add(d, 'd')
                .add("_", ' ')
                .add(name, 'm')
                .add("_", ' ')
                .add(y, 'y'),
            WrittenDate().add(two(day), 'd').add(".", ' ').add(two(month), 'm').add(".", ' ').add(y, 'y'),
            WrittenDate().add(two(day), 'd').add("/", ' ').add(two(month), 'm').add("/", ' ').add(yy, 'y'),
            WrittenDate().add(d, 'd').add("_", ' ').add(name.substr(0, 3), 'm').add("_", ' ').add(yy, 'y')};
  }
};

// Returns the positions of the pieces of that kind.
Tokens places(const WrittenDate& written, char part) {
  Tokens out;
  for (std::size_t i = 0; i < written.parts.size(); ++i)
    if (written.parts[i] == part) out.push_back(static_cast<std::int32_t>(i));
  return out;
}

// Returns the positions that character i of an ISO date depends on.
Tokens expected_keys(const WrittenDate& written, std::size_t i) {
  const Tokens year = places(written, 'y'), month = places(written, 'm'), day = places(written, 'd');
  const bool is_number = std::isdigit(written.text[static_cast<std::size_t>(month[0])]) != 0;
  switch (i) {
    case 0:
      return {year[0]};
    case 1:
      return {year.size() == 4 ? year[1] : year[0]};
    case 2:
      return {year[year.size() - 2]};
    case 3:
      return {year.back()};
    case 5:
      return is_number ? Tokens{month[0]} : month;
    case 6:
      return is_number ? Tokens{month[1]} : month;
    case 8:
      return {day.front()};
    case 9:
      return {day.back()};
    default:
      return {};
  }
}

struct Reading {
  std::string iso;
  std::size_t way;
  WrittenDate written;
};

// Every way to write every day from 1970 to 2069.
const std::map<std::string, Reading>& readings() {
  static const std::map<std::string, Reading> all = [] {
    std::map<std::string, Reading> out;
    for (Day day; day.year < 2070; day.next()) {
      const std::vector<WrittenDate> ways = day.ways();
      for (std::size_t way = 0; way < ways.size(); ++way) out[ways[way].text] = {day.iso(), way, ways[way]};
    }
    return out;
  }();
  return all;
}

std::string text(const Tokens& tokens) {
  static const auto vocabulary = find_task("dates").tokens(kDates);
  std::string out;
  for (const std::int32_t token : tokens) out += vocabulary.at(static_cast<std::size_t>(token));
  return out;
}

}  // namespace

TEST_CASE("the calendar of the test is Gregorian", "[tasks][slow]") {
  const std::map<std::string, std::string> known = {
      {"3_May_1979", "1979-05-03"},
      {"May_3,_1979", "1979-05-03"},
      {"Thursday_3_May_1979", "1979-05-03"},
      {"05/10/09", "2009-10-05"},
      {"10.11.1985", "1985-11-10"},
      {"Saturday_5_May_2012", "2012-05-05"},
      {"29_Feb_00", "2000-02-29"},
      {"31/12/69", "2069-12-31"},
      {"01/01/70", "1970-01-01"},
      {"22nd_of_September_2021", "2021-09-22"},
      {"11th_of_June_1999", "1999-06-11"},
      {"Wednesday_22_September_2021", "2021-09-22"},
  };
  for (const auto& [written, iso] : known) CHECK(readings().at(written).iso == iso);
  for (const char* wrong : {"29_Feb_01", "Friday_5_May_2012", "3_May_1969", "3_May_2070", "32_May_1979"})
    CHECK_FALSE(readings().contains(wrong));
}

TEST_CASE("dates are real ones, and their answer is the ISO form", "[tasks][slow]") {
  std::map<std::size_t, double> ways;
  std::map<std::string, double> years, weekdays;
  const auto examples = draw(kDates, 20000);
  for (const Example& e : examples) {
    const std::string date = text(e.input);
    INFO(date);
    REQUIRE(readings().contains(date));
    const Reading& reading = readings().at(date);
    REQUIRE(text(e.target) == reading.iso);
    for (std::size_t i = 0; i < e.target.size(); ++i)
      REQUIRE(relevant(kDates, e, i) == expected_keys(reading.written, i));
    ++ways[reading.way];
    ++years[reading.iso.substr(0, 4)];
    if (reading.way == 3) ++weekdays[date.substr(0, date.find('_'))];
  }
  CHECK((ways.size() == 7 && years.size() == 100 && weekdays.size() == 7));
  for (const auto& [_, n] : ways) CHECK_THAT(n, WithinAbs(20000.0 / 7, 250));
  for (const auto& [_, n] : years) CHECK_THAT(n, WithinAbs(200, 70));
  for (const auto& [_, n] : weekdays) CHECK_THAT(n, WithinAbs(20000.0 / 49, 100));
}

TEST_CASE("there are as many dates as the task says, and no two read alike", "[tasks][slow]") {
  const Task& task = find_task("dates");
  CHECK(task.distinct_inputs(kDates) == static_cast<double>(readings().size()));
  CHECK(readings().size() == 7 * 36525);

  std::map<char, double> counts;  // of the answers to all of them
  std::set<char> used;
  std::size_t longest = 0;
  for (const auto& [date, reading] : readings()) {
    longest = std::max(longest, date.size());
    used.insert(date.begin(), date.end());
    for (const char character : reading.iso) ++counts[character];
  }
  CHECK(task.size(kDates).input == static_cast<std::int64_t>(longest));
  double most = 0;
  for (const auto& [_, count] : counts) most = std::max(most, count);
  CHECK(counts['0'] == most);
  CHECK_THAT(task.chance(kDates), WithinRel(most / static_cast<double>(10 * readings().size()), 1e-12));

  used.insert('-');
  std::set<char> vocabulary;
  for (const std::string& name : task.tokens(kDates)) {
    CHECK(name.size() == 1);
    vocabulary.insert(name[0]);
  }
  CHECK(vocabulary == used);
}
