// SPDX-License-Identifier: Apache-2.0
// Matrices whose elements stand at the sum of an offset of their row and one of their column: dense
// and transposed ones, parts of tensors, and the patches of an image (im2col, never written out).
#pragma once

#include <vector>

#include "base/types.h"

namespace privml::linear {

// Element (i, j) is words[row[i] + column[j]].
struct IndexedMatrix {
  const u64* words = nullptr;
  std::span<const i64> row, column;
};

struct IndexedOutput {
  u64* words = nullptr;
  std::span<const i64> row, column;
};

// 0, stride, 2 * stride, ...
std::vector<i64> strided(i64 count, i64 stride);

}  // namespace privml::linear
