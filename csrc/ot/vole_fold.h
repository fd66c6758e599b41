// SPDX-License-Identifier: Apache-2.0
// The sums of small-field VOLE: from the pseudo-random rows r_x of 2^digit seeds, the total XOR_x
// r_x and for each bit b of x the plane XOR_{x: bit b of x is 1} r_x.
#pragma once

#include "crypto/aes.h"

namespace privml::ot {

inline constexpr int kFoldMaxDigit = 4;  // 16 rows fit the vector registers
inline constexpr i64 kFoldBlocks = 4;    // rows come in whole vectors of the widest kind

// `digit` planes, `stride` blocks apart. With `add` the sums are XORed into what stands there, else
// they replace it.
struct FoldPlanes {
  crypto::Block* first;
  i64 stride;
  bool add;
};

// rows: 2^digit rows of `blocks` blocks (a multiple of kFoldBlocks), 0 <= digit <= kFoldMaxDigit.
// Writes total, one row; `total` may be the first of the rows.
void vole_fold(const crypto::Block* rows, int digit, i64 blocks, crypto::Block* total,
               const FoldPlanes& planes);

// The same with r_x = AES_{seeds[x]}(position + i), i = 0 .. blocks - 1, position + blocks < 2^64;
// `scratch` holds 2^digit rows. All seeds have one backend, whose kernels it uses.
void vole_expand(const crypto::Aes128* seeds, int digit, u64 position, i64 blocks,
                 crypto::Block* scratch, crypto::Block* total, const FoldPlanes& planes);

// vole_expand() on any machine.
void vole_expand_portable(const crypto::Aes128* seeds, int digit, u64 position, i64 blocks,
                          crypto::Block* scratch, crypto::Block* total, const FoldPlanes& planes);

}  // namespace privml::ot
