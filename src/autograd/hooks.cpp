#include "thimble/autograd/hooks.h"

#include <charconv>

namespace thimble::inline THIMBLE_PRECISION {

Var site(Hooks* hooks, const std::string& name, Var x) {
  if (hooks == nullptr) return x;
  const Var copy = x.tape().zeros(x.shape());
  std::copy_n(x.value().data, x.shape().elements(), copy.value().data);
  if (hooks->replace(name, copy.shape(), copy.value())) x = copy;
  hooks->observe(name, x.shape(), x.value());
  hooks->record(name, x);
  return x;
}

std::optional<std::int64_t> position_of(std::string_view site, std::string_view name) {
  if (!site.starts_with(name)) return std::nullopt;
  if (site.size() == name.size()) return 0;
  const std::string_view rest = site.substr(name.size());
  std::int64_t position = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), position);
  const bool read = rest[0] == '.' && error == std::errc() && end == rest.data() + rest.size();
  return read ? std::optional(position) : std::nullopt;
}

}  // namespace thimble::inline THIMBLE_PRECISION
