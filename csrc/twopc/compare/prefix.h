// SPDX-License-Identifier: Apache-2.0
// Sklansky's parallel prefix network (IRE Trans. Electronic Computers, 1960).
#pragma once

#include <vector>

#include "base/types.h"

namespace privml::twopc {

// Position `high` absorbs `low`, which covers the block below.
struct PrefixNode {
  i64 high, low;
};

// Nodes of one level in ascending order; after it the first `complete` of them reach down to
// position 0.
struct PrefixLevel {
  std::vector<PrefixNode> nodes;
  i64 complete = 0;
};

// ceil(log2(size)) levels, after which position i holds the product of positions 0..i.
inline std::vector<PrefixLevel> prefix_levels(i64 size) {
  std::vector<PrefixLevel> levels;
  for (i64 half = 1; half < size; half *= 2) {
    PrefixLevel level;
    for (i64 i = half; i < size; ++i) {
      if ((i / half) % 2 == 0) continue;
      level.nodes.push_back({i, i / half * half - 1});
      if (i < 2 * half) ++level.complete;
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

}  // namespace privml::twopc
