// SPDX-License-Identifier: Apache-2.0
// Matrices whose elements stand at the sum of an offset of their row and one of their column: dense
// and transposed ones, parts of tensors, and the patches of an image (im2col, never written out).
// And the panels of them that the kernels read: some lanes (rows of the left or columns of the
// right factor) over all steps of the inner dimension.
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

// Whether offsets, of which there is one at least, are first, first + 1, ...
bool follow_each_other(std::span<const i64> offsets);

// out[s * width + l] = words[lanes[l] + steps[s]] for all lanes and steps, reduced to the word; the
// panel's lanes after the last, up to `width`, are zeros.
template <class Word>
void pack(const u64* words, std::span<const i64> lanes, std::span<const i64> steps, i64 width,
          Word* out);

}  // namespace privml::linear
