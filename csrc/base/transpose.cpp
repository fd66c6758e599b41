// SPDX-License-Identifier: Apache-2.0
#include "base/transpose.h"

#include <cstring>

#include "base/multiversion.h"

namespace privml {
namespace {

// Rows r and r + 64 side by side: the four 64 x 64 quadrants are transposed at once.
typedef u64 Rows __attribute__((vector_size(32)));

// Swaps the off-diagonal squares of side `shift` between two rows (Warren, Hacker's Delight, 7-3).
template <int shift>
inline __attribute__((always_inline)) void exchange(Rows& upper, Rows& lower, u64 mask) {
  const Rows moved = ((upper >> shift) ^ lower) & mask;
  lower ^= moved;
  upper ^= moved << shift;
}

// Three levels on eight rows that stay in registers: squares of 4, 2 and 1 times `unit` rows.
template <int unit>
inline __attribute__((always_inline)) void three_levels(Rows* rows, i64 step,
                                                        const u64 (&masks)[3]) {
  Rows v[8];
  for (int i = 0; i < 8; ++i) v[i] = rows[i * step];
  for (int i = 0; i < 4; ++i) exchange<4 * unit>(v[i], v[i + 4], masks[0]);
  for (int i : {0, 1, 4, 5}) exchange<2 * unit>(v[i], v[i + 2], masks[1]);
  for (int i : {0, 2, 4, 6}) exchange<unit>(v[i], v[i + 1], masks[2]);
  for (int i = 0; i < 8; ++i) rows[i * step] = v[i];
}

}  // namespace

PRIVML_TARGET_CLONES
void transpose_128_rows(const u64* rows, i64 blocks, u64* out) {
  constexpr u64 kCoarse[3] = {0x00000000ffffffff, 0x0000ffff0000ffff, 0x00ff00ff00ff00ff};
  constexpr u64 kFine[3] = {0x0f0f0f0f0f0f0f0f, 0x3333333333333333, 0x5555555555555555};
  for (i64 block = 0; block < blocks; ++block) {
    Rows v[64];
    for (i64 r = 0; r < 64; ++r) {
      const u64* upper = rows + (r * blocks + block) * 2;
      const u64* lower = upper + 64 * blocks * 2;
      v[r] = Rows{upper[0], upper[1], lower[0], lower[1]};
    }
    for (int first = 0; first < 8; ++first) three_levels<8>(v + first, 8, kCoarse);
    for (int first = 0; first < 64; first += 8) three_levels<1>(v + first, 1, kFine);
    u64* to = out + block * 256;
    for (i64 c = 0; c < 64; ++c) {
      to[2 * c] = v[c][0];
      to[2 * c + 1] = v[c][2];
      to[2 * (c + 64)] = v[c][1];
      to[2 * (c + 64) + 1] = v[c][3];
    }
  }
}

}  // namespace privml
