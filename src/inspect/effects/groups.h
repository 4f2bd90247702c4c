// The search for groups of heads that replace each other: each costs nothing alone, all of them together do.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace thimble {

// A set of heads, by ascending index.
using HeadSet = std::vector<std::size_t>;

// The search visits all subsets of up to this many heads.
inline constexpr std::size_t kExactHeads = 16;

struct GroupSearch {
  std::vector<HeadSet> groups;  // minimal costly sets of at least two heads
  std::size_t tested = 0;       // sets whose cost was measured
  bool exact = false;           // groups has every minimal costly set
};

// Finds minimal costly sets of `count` heads. is_costly(set) measures a set; a costly set stays costly when a
// head is added, and a single head is not costly. `known` are sets that are costly; costless_pairs says that
// no other pair is. Up to kExactHeads heads the search finds every minimal set: it tests the largest set that
// is still undecided, whose subsets are costless if it is, and otherwise shrinks it (M. H. Liffiton et al.,
// "Fast, flexible MUS enumeration", Constraints 21, 2016). Beyond, it grows a costless set head by head, in
// both orders, and shrinks what becomes costly. Stops after `limit` tests.
GroupSearch find_groups(std::size_t count, const std::vector<HeadSet>& known, bool costless_pairs,
                        const std::function<bool(const HeadSet&)>& is_costly, std::size_t limit);

}  // namespace thimble
