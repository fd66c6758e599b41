// SPDX-License-Identifier: Apache-2.0
// Rotation of a table by a secret amount.
#pragma once

#include <utility>

#include "base/types.h"

namespace privml::twopc {

// out[j] = table[(j + amount) mod 2^bits], without an address that depends on `amount`: one masked
// move per bit of it. `buffer` has 2 * 2^bits words; the result stands in its first half.
template <class Word>
[[gnu::always_inline]] inline void rotate_table(const Word* table, int bits, u64 amount,
                                                Word* buffer) {
  const i64 size = i64{1} << bits;
  for (i64 j = 0; j < size; ++j) buffer[j] = table[j];
  for (int level = 0; level < bits; ++level) {
    const Word mask = Word{0} - static_cast<Word>((amount >> level) & 1);
    const i64 step = i64{1} << level;
    for (i64 j = 0; j < step; ++j) buffer[size + j] = buffer[j];
    // In place from below: entry j + step is read before it is written.
    for (i64 j = 0; j < size; ++j) buffer[j] ^= (buffer[j] ^ buffer[j + step]) & mask;
  }
}

}  // namespace privml::twopc
