// SPDX-License-Identifier: Apache-2.0
// Transposition of bit matrices with 128 rows.
#pragma once

#include "base/types.h"

namespace privml {

// `rows` holds 128 rows of `blocks` 16-byte blocks each, `stride` blocks apart; bit c of a row is
// bit c % 8 of its byte c / 8. out[c] (16 bytes, 128 * blocks of them) gets bit r of every row: its
// bit r is bit c of row r. `rows` and `out` must not overlap.
void transpose_128_rows(const u64* rows, i64 stride, i64 blocks, u64* out);

// The instruction set that transpose_128_rows() uses.
const char* transpose_kernel();

// The same with each instruction set; all but the portable one exist on x86-64 only.
void transpose_128_rows_portable(const u64* rows, i64 stride, i64 blocks, u64* out);
void transpose_128_rows_avx2(const u64* rows, i64 stride, i64 blocks, u64* out);
void transpose_128_rows_gfni(const u64* rows, i64 stride, i64 blocks, u64* out);
bool transpose_gfni_supported();  // GFNI and AVX-512

template <class Block16>
void transpose_128(const Block16* rows, i64 stride, i64 blocks, Block16* out) {
  static_assert(sizeof(Block16) == 16);
  transpose_128_rows(reinterpret_cast<const u64*>(rows), stride, blocks,
                     reinterpret_cast<u64*>(out));
}

}  // namespace privml
