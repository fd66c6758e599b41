// SPDX-License-Identifier: Apache-2.0
// Shares in a smaller ring are the low bits of shares in a larger one.
#pragma once

#include <span>

#include "base/types.h"

namespace privml {

// out may be x.
inline void keep_low_bits(std::span<const u64> x, int bits, std::span<u64> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] & low_mask(bits);
}

}  // namespace privml
