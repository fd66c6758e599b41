// SPDX-License-Identifier: Apache-2.0
// Words on the wire: packed without gaps, the bits after the last being zero.
#pragma once

#include "lattice/words.h"

namespace privml::lattice {

// The high words, then the low bits.
i64 words_bytes(i64 count, int low_bits);
void write_words(WordsView words, int low_bits, MutableBytes out);
// Throws ProtocolError unless `in` has words_bytes() bytes that write_words() could have written.
void read_words(Bytes in, int low_bits, WordsOutput out);

// Numbers of `bits` bits, 1 to 64.
void write_numbers(std::span<const u64> numbers, int bits, MutableBytes out);
void read_numbers(Bytes in, int bits, std::span<u64> out);

}  // namespace privml::lattice
