// The search for groups of heads that replace each other.
#include "inspect/effects/groups.h"

#include <algorithm>

#include "catch.h"

using namespace thimble;

namespace {

// Returns the search among heads of which only sets that include one of these groups are costly.
GroupSearch search(std::size_t count, const std::vector<HeadSet>& groups, std::size_t limit = 500) {
  std::vector<HeadSet> pairs;
  for (const HeadSet& group : groups)
    if (group.size() == 2) pairs.push_back(group);
  const auto is_costly = [&](const HeadSet& set) {
    return std::ranges::any_of(groups,
                               [&](const HeadSet& group) { return std::ranges::includes(set, group); });
  };
  GroupSearch found = find_groups(count, pairs, true, is_costly, limit);
  std::ranges::sort(found.groups);
  return found;
}

}  // namespace

TEST_CASE("up to 16 heads, all minimal groups are found", "[inspect]") {
  const std::vector<std::vector<HeadSet>> cases = {{},
                                                   {{0, 1}},
                                                   {{0, 1, 2}},
                                                   {{0, 1}, {1, 2}, {0, 2}},
                                                   {{0, 3}, {1, 2, 4}, {2, 4, 5, 6}},
                                                   {{0, 1, 2, 3}, {3, 4, 5, 6}, {1, 6, 7}}};
  for (const std::size_t count : {8, 16}) {
    for (const std::vector<HeadSet>& groups : cases) {
      const GroupSearch found = search(count, groups);
      std::vector<HeadSet> sorted = groups;
      std::ranges::sort(sorted);
      CHECK(found.groups == sorted);
      CHECK(found.exact);
      CHECK(found.tested <= 120);
    }
  }
  CHECK(search(16, {}).tested == 1);
}

TEST_CASE("beyond 16 heads, groups are found greedily", "[inspect]") {
  for (const std::vector<HeadSet>& groups :
       std::vector<std::vector<HeadSet>>{{}, {{3, 17}}, {{2, 9, 20}}, {{0, 1}, {5, 6, 7}, {8, 20, 30, 31}}}) {
    const GroupSearch found = search(32, groups);
    CHECK(found.groups == groups);
    CHECK_FALSE(found.exact);
    CHECK(found.tested <= 300);
  }
}

TEST_CASE("a search that runs out of tests is not exact, and has only minimal groups", "[inspect]") {
  const std::vector<HeadSet> groups = {{0, 1, 2, 3}, {3, 4, 5, 6}, {1, 6, 7}};
  for (const std::size_t limit : {0, 1, 7, 20}) {
    const GroupSearch found = search(16, groups, limit);
    CHECK_FALSE(found.exact);
    CHECK(found.tested <= limit);
    for (const HeadSet& group : found.groups) CHECK(std::ranges::find(groups, group) != groups.end());
  }
}
