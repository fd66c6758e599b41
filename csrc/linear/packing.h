// SPDX-License-Identifier: Apache-2.0
// Panels that the kernels read: some lanes (rows of the left or columns of the right factor) over
// all steps of the inner dimension.
#pragma once

#include "linear/indexed.h"

namespace privml::linear {

// out[s * width + l] = words[lanes[l] + steps[s]] for all lanes and steps, reduced to the word; the
// panel's lanes after the last, up to `width`, are zeros.
template <class Word>
void pack(const u64* words, std::span<const i64> lanes, std::span<const i64> steps, i64 width,
          Word* out);

}  // namespace privml::linear
