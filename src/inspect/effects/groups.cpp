#include "inspect/effects/groups.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace thimble {

namespace {

class Search {
 public:
  Search(std::size_t count, const std::vector<HeadSet>& known, bool costless_pairs,
         const std::function<bool(const HeadSet&)>& is_costly, std::size_t limit)
      : count_(count), costless_pairs_(costless_pairs), is_costly_(is_costly), limit_(limit) {
    found_.groups = known;
  }

  GroupSearch finish() {
    count_ <= kExactHeads ? enumerate() : grow_both_ways();
    return std::move(found_);
  }

 private:
  bool exhausted() const { return found_.tested >= limit_; }

  bool contains_group(const HeadSet& set) const {
    return std::ranges::any_of(found_.groups,
                               [&](const HeadSet& group) { return std::ranges::includes(set, group); });
  }

  // Returns whether the set is costly; false where only a test could decide it and none is left.
  bool costly(const HeadSet& set) {
    if (contains_group(set)) return true;
    if (set.size() < 2 || (set.size() == 2 && costless_pairs_) || exhausted()) return false;
    ++found_.tested;
    return is_costly_(set);
  }

  // Removes heads from a costly set, the last ones first, while the rest stays costly.
  HeadSet shrunk(HeadSet set) {
    for (std::size_t i = set.size(); i-- > 0;) {
      HeadSet rest = set;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (costly(rest)) set = std::move(rest);
    }
    return set;
  }

  void add_group(const HeadSet& set) {
    HeadSet group = shrunk(set);
    if (!exhausted()) found_.groups.push_back(std::move(group));  // otherwise perhaps not minimal
  }

  HeadSet set_of(std::uint32_t bits) const {
    HeadSet set;
    for (std::size_t i = 0; i < count_; ++i)
      if ((bits >> i & 1) != 0) set.push_back(i);
    return set;
  }

  void enumerate() {
    std::vector<std::uint32_t> order;  // all sets, the largest first
    for (std::uint32_t bits = 0; bits < std::uint32_t{1} << count_; ++bits) order.push_back(bits);
    std::ranges::stable_sort(order, std::greater(), [](std::uint32_t bits) { return std::popcount(bits); });
    std::vector<std::uint32_t> costless;  // maximal sets
    for (const std::uint32_t bits : order) {
      if (std::popcount(bits) < 2) break;
      const auto covers = [&](std::uint32_t set) { return (bits & ~set) == 0; };
      const HeadSet set = set_of(bits);
      if (std::ranges::any_of(costless, covers) || contains_group(set)) continue;
      if (!costly(set))
        costless.push_back(bits);
      else
        add_group(set);
      if (exhausted()) return;
    }
    found_.exact = true;
  }

  // Adds a group for every head that makes a growing costless set costly.
  void grow(const std::vector<std::size_t>& order) {
    HeadSet grown;
    for (const std::size_t head : order) {
      if (exhausted()) return;
      HeadSet larger = grown;
      larger.insert(std::ranges::lower_bound(larger, head), head);
      if (contains_group(larger)) continue;
      if (costly(larger))
        add_group(larger);
      else
        grown = std::move(larger);
    }
  }

  void grow_both_ways() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < count_; ++i) order.push_back(i);
    grow(order);
    std::ranges::reverse(order);
    grow(order);
  }

  std::size_t count_;
  bool costless_pairs_;
  const std::function<bool(const HeadSet&)>& is_costly_;
  std::size_t limit_;
  GroupSearch found_;
};

}  // namespace

GroupSearch find_groups(std::size_t count, const std::vector<HeadSet>& known, bool costless_pairs,
                        const std::function<bool(const HeadSet&)>& is_costly, std::size_t limit) {
  return Search(count, known, costless_pairs, is_costly, limit).finish();
}

}  // namespace thimble
