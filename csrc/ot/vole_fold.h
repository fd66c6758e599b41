// SPDX-License-Identifier: Apache-2.0
// The sums of small-field VOLE: from the pseudo-random rows r_x of 2^digit seeds, the total XOR_x
// r_x and for each bit b of x the plane XOR_{x: bit b of x is 1} r_x.
#pragma once

#include "crypto/block.h"

namespace privml {

inline constexpr int kFoldMaxDigit = 4;  // 16 rows fit the vector registers

// rows: 2^digit rows of `blocks` blocks (an even number), 0 <= digit <= kFoldMaxDigit. Writes total
// (one row) and XORs into planes (`digit` rows), both with the same row length.
void vole_fold(const Block* rows, int digit, i64 blocks, Block* total, Block* planes);

}  // namespace privml
