#include "train/config/differences.h"

#include <fmt/format.h>

#include "train/config/fields.h"
#include "train/config/value.h"

namespace thimble {

std::vector<Difference> differences(const Config& a, const Config& b, std::string_view name_a,
                                    std::string_view name_b) {
  Config copy_a = a, copy_b = b;
  const config::Section root_a = config::describe(copy_a), root_b = config::describe(copy_b);
  const auto all_a = config::flatten(root_a), all_b = config::flatten(root_b);
  std::vector<Difference> out;
  for (std::size_t i = 0; i < all_a.size(); ++i) {
    const config::Field &in_a = *all_a[i].field, &in_b = *all_b[i].field;
    if (in_a.section() != nullptr || !in_a.applies || !in_b.applies) continue;
    const std::string value_a = config::value_text(in_a), value_b = config::value_text(in_b);
    if (value_a == value_b) continue;
    const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
    const std::string& key = all_a[i].path;
    out.push_back({key,
                   fmt::format("{}: {} in {}, {} in {}", key, shown(value_a), name_a, shown(value_b), name_b),
                   in_a.may_change});
  }
  return out;
}

std::string fixed_values(const Config& c) {
  Config copy = c;
  const config::Section root = config::describe(copy);
  std::string lines;
  for (const auto& [path, field] : config::flatten(root)) {
    const std::string value = config::value_text(*field);
    if (field->section() == nullptr && field->applies && !field->may_change &&
        (field->newer.empty() || value != field->newer))
      lines += fmt::format("{}: {}\n", path, value);
  }
  return lines;
}

}  // namespace thimble
