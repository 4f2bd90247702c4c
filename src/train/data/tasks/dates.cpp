#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "thimble/train/task.h"

namespace thimble::tasks::dates {
namespace {

// The tokens: characters of dates, with "_" for a space.
constexpr std::string_view kCharacters = "0123456789_-/.,ADFJMNOSTWabcdefghilmnoprstuvy";

constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
constexpr std::string_view kWeekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                          "Thursday", "Friday", "Saturday"};

// Days from 1970-01-01 to 2069-12-31, the years that two digits can mean.
constexpr std::int64_t kDays =
    (std::chrono::sys_days(std::chrono::year(2070) / 1 / 1) - std::chrono::sys_days()).count();

struct Date {
  int year;
  unsigned month, day, weekday;

  explicit Date(std::int64_t days_since_1970) {
    const std::chrono::sys_days point(std::chrono::days{days_since_1970});
    const std::chrono::year_month_day date(point);
    year = static_cast<int>(date.year());
    month = static_cast<unsigned>(date.month());
    day = static_cast<unsigned>(date.day());
    weekday = std::chrono::weekday(point).c_encoding();
  }
};

// Of day, month, year, the last two digits of the year, the names of the month and of the weekday, and the ending of the day.
constexpr const char* kForms[] = {"{0} {4} {2}",      "{4} {0}, {2}",      "{0}{6} of {4} {2}",
                                  "{5} {0} {4} {2}",  "{0:02}.{1:02}.{2}", "{0:02}/{1:02}/{3:02}",
                                  "{0} {4:.3} {3:02}"};
constexpr ExampleSize kMaxLength = {27, 10};  // "Wednesday 22 September 2021" and "2021-09-22"
using Text = std::array<char, static_cast<std::size_t>(kMaxLength.input)>;

std::string_view ordinal_ending(unsigned day) {
  constexpr std::string_view kEndings[] = {"th", "st", "nd", "rd"};
  return day / 10 != 1 && day % 10 <= 3 ? kEndings[day % 10] : kEndings[0];
}

// Writes a date in one of the forms and returns the end of the text.
char* write(const Date& date, std::int64_t form, char* out) {
  const auto& [year, month, day, weekday] = date;
  return fmt::format_to(out, fmt::runtime(kForms[form]), day, month, year, year % 100, kMonths[month - 1],
                        kWeekdays[weekday], ordinal_ending(day));
}

char* write_iso(const Date& date, char* out) {
  return fmt::format_to(out, "{}-{:02}-{:02}", date.year, date.month, date.day);
}

void to_tokens(const char* first, const char* last, std::vector<std::int32_t>& out) {
  out.clear();
  for (; first != last; ++first)
    out.push_back(static_cast<std::int32_t>(kCharacters.find(*first == ' ' ? '_' : *first)));
}

void sample(const TaskConfig&, SampleRng& rng, Example& example) {
  const Date date(rng.below(kDays));
  Text text;
  to_tokens(text.data(), write(date, rng.below(std::ssize(kForms)), text.data()), example.input);
  to_tokens(text.data(), write_iso(date, text.data()), example.target);
}

// Puts a weekday before half of the dates without one, where it fits, so that their parts move.
void vary(const TaskConfig&, SampleRng& rng, Example& example) {
  constexpr std::int64_t kWithWeekday = 3;
  const Date date(rng.below(kDays));
  const std::int64_t drawn = rng.below(std::ssize(kForms) - 1);
  Text text;
  char* const end = write(date, drawn + (drawn >= kWithWeekday ? 1 : 0), text.data());
  std::string written(text.data(), end);
  const std::string_view weekday = kWeekdays[date.weekday];
  if (rng.below(2) == 0 && written.size() + weekday.size() < text.size())
    written = fmt::format("{} {}", weekday, written);
  to_tokens(written.data(), written.data() + written.size(), example.input);
  to_tokens(text.data(), write_iso(date, text.data()), example.target);
}

std::vector<std::string> tokens(const TaskConfig&) {
  std::vector<std::string> names;
  for (const char character : kCharacters) names.emplace_back(1, character);
  return names;
}

ExampleSize size(const TaskConfig&) { return kMaxLength; }

double distinct_inputs(const TaskConfig&) { return static_cast<double>(std::ssize(kForms) * kDays); }

// The most frequent character is 0.
double chance(const TaskConfig&) {
  static const std::int64_t zeros = [] {
    std::int64_t count = 0;
    Text text;
    for (std::int64_t day = 0; day < kDays; ++day)
      count += std::count(text.data(), write_iso(Date(day), text.data()), '0');
    return count;
  }();
  return static_cast<double>(zeros) / static_cast<double>(kDays * kMaxLength.target);
}

// A range of tokens of the input.
struct Run {
  std::int32_t first = 0, count = 0;
};
struct Parts {
  Run day, month, year;
};

// Returns '0' for a digit, 'a' for a letter, else ' '.
char class_of(std::int32_t token) {
  constexpr std::int32_t kDigits = 10, kLetters = kCharacters.find('A');
  return token < kDigits ? '0' : token < kLetters ? ' ' : 'a';
}

// Finds day, month and year. Two groups of digits are day and year, three have a month between them; the name
// of a month is the last word.
Parts find_parts(const std::vector<std::int32_t>& input) {
  std::vector<Run> numbers;
  Run word;
  char before = ' ';
  for (std::int32_t i = 0; i < std::ssize(input); ++i) {
    const char here = class_of(input[static_cast<std::size_t>(i)]);
    if (here == '0' && before != '0') numbers.push_back({i, 0});
    if (here == 'a' && before != 'a') word = {i, 0};
    if (here == '0') ++numbers.back().count;
    if (here == 'a') ++word.count;
    before = here;
  }
  return {numbers.front(), numbers.size() == 3 ? numbers[1] : word, numbers.back()};
}

// The digit of the input; if the input has fewer digits, its first one determines those before it.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  const auto& [day, month, year] = find_parts(example.input);
  constexpr std::int32_t kYear = 0, kMonth = 1, kDay = 2;
  const auto add_digit = [&](const Run& run, std::int32_t digit, std::int32_t digits, std::int32_t kind) {
    keys.push_back({run.first + std::max(0, digit - (digits - run.count)), kind});
  };
  const auto place = static_cast<std::int32_t>(i);
  if (place < 4) return add_digit(year, place, 4, kYear);
  if (place >= 8) return add_digit(day, place - 8, 2, kDay);
  if (place == 4 || place == 7) return;  // "-"
  if (month.count == 2) return add_digit(month, place - 5, 2, kMonth);
  for (std::int32_t letter = 0; letter < month.count; ++letter)
    keys.push_back({month.first + letter, kMonth});
}

// All digits, or for the name of a month all letters.
void candidates(const TaskConfig& config, const Example& example, std::size_t i,
                std::vector<std::int32_t>& keys) {
  std::vector<Relevant> found;
  relevant(config, example, i, found);
  if (found.empty()) return;
  const char wanted = class_of(example.input[static_cast<std::size_t>(found[0].key)]);
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (class_of(example.input[j]) == wanted) keys.push_back(static_cast<std::int32_t>(j));
}

}  // namespace

Task task() {
  return {
      .summary = "dates as people write them, in ISO form",
      .definition =
          "The input is a date, uniform from 1970-01-01 to 2069-12-31, in one of seven forms, each equally "
          "likely: 3 May 1979; May 3, 1979; 3rd of May 1979; Thursday 3 May 1979; 03.05.1979; 03/05/79; 3 "
          "Sep 79, with three letters for every month. In numbers, the day comes before the month: "
          "05/10/09 is 5 October 2009. A year of two digits is in 1970 to 2069. Weekdays are correct. The "
          "answer is the ISO form, 1979-05-03. Each character is a token, a space is _. A digit of the "
          "answer depends on that of the input, and the digits of a month on all letters of its name; the "
          "zero before a day of one digit on that digit, and the century of a short year on the first of "
          "its digits. It has no keys. Dates are the exercise on attention of the course Sequence Models, "
          "Ng 2018, after Bahdanau, Cho and Bengio 2015.",
      .tokens = tokens,
      .size = size,
      .sample = sample,
      .distinct_inputs = distinct_inputs,
      .chance = chance,
      .special = {"_", "-", "/", ".", ","},
      .relevant = relevant,
      .kinds = {"year", "month", "day"},
      .candidates = candidates,
      .vary = vary};
}

}  // namespace thimble::tasks::dates
