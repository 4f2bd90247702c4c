#include "thimble/engine/profile.h"

#include <algorithm>

namespace thimble {

void Profile::start(std::string_view name) {
  stop();
  running_ = name;
  since_ = std::chrono::steady_clock::now();
}

void Profile::stop() {
  if (running_.empty()) return;
  Span& last = span(running_);
  last.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  ++last.count;
  running_ = {};
}

void Profile::add(const Profile& other) {
  for (const Span& from : other.spans_) {
    Span& to = span(from.name);
    to.seconds += from.seconds;
    to.count += from.count;
  }
}

Profile::Span& Profile::span(std::string_view name) {
  const auto found = std::ranges::find(spans_, name, &Span::name);
  return found != spans_.end() ? *found : spans_.emplace_back(Span{.name = name});
}

}  // namespace thimble
