// A profile: time and number of named spans that follow one another on one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

namespace thimble {

class Profile {
 public:
  struct Span {
    std::string_view name;
    double seconds = 0;
    std::int64_t count = 0;
  };

  // Ends the running span and starts one of this name; spans of one name add up. `name` must outlive the
  // profile.
  void start(std::string_view name);
  void stop();

  void add(const Profile& other);
  const std::vector<Span>& spans() const { return spans_; }  // in the order of their first start

 private:
  Span& span(std::string_view name);

  std::vector<Span> spans_;
  std::string_view running_;  // empty: none
  std::chrono::steady_clock::time_point since_;
};

}  // namespace thimble
