// SPDX-License-Identifier: Apache-2.0
// Vector OLE over Z_{2^b} with a fixed key: one party's vector times the other's key, shared.
//
// Functionality  the vector's side has x, gets v; the key's side gets m = x * f(key) + v. Two
//                kinds: a number (the MAC key), or every bit of the key on its own.
// Method         per digit of the key, from its punctured seeds (seed_trees.h): the sum u of all
//                streams is corrected to x by one word, and for every bit i of the digit the sum
//                S_i of the streams whose number has bit i gives m_i = +-S_i + bit_i * (x - u),
//                v_i = -S_i. A digit of w bits costs one word instead of the w of a transfer per
//                bit, and 2^w streams instead of 2 w. For a number, digit d weighs 2^(w d) and its
//                correction needs b - w d bits.
// Security       against a dishonest vector's side the products may belong to another x for every
//                digit; callers check (authentication.h) or live with it (products.h).
// Cost           vector's side: n words for each digit.
// Source         all-but-one transfers as VOLE: Roy, "SoftSpokenOT" (Crypto 2022), section 3, here
//                over a ring; the number's form replaces the COTs of SPDZ2k (Crypto 2018), Fig. 5.
#pragma once

#include "spdz2k/shares/columns.h"
#include "spdz2k/vole/seed_trees.h"

namespace privml::spdz2k {

// A product with every bit of a key: `count` words per bit.
template <class W>
struct Columns {
  i64 count = 0;
  WipedVector<W> words;

  Columns() = default;
  Columns(int bits, i64 n) : count(n), words(bits * n) {}
  W* operator[](int bit) { return words.data() + bit * count; }
  const W* operator[](int bit) const { return words.data() + bit * count; }
};

// Words of b <= 8 sizeof(W) bits. One side writes, the other reads.
template <class W>
void vector_times_key(SeedStreams& peer_key, net::Channel& channel, int b, std::span<const W> x,
                      std::span<W> v);
template <class W>
void key_times_vector(SeedStreams& own_key, net::Channel& channel, int b, std::span<const u8> key,
                      std::span<W> m);
i64 key_product_bytes(const TreeShape& shape, int b, i64 n);

template <class W>
Columns<W> vector_times_bits(SeedStreams& peer_key, net::Channel& channel, int b,
                             std::span<const W> x);
template <class W>
Columns<W> bits_times_vector(SeedStreams& own_key, net::Channel& channel, int b,
                             std::span<const u8> key, i64 n);
i64 bit_product_bytes(const TreeShape& shape, int b, i64 n);

}  // namespace privml::spdz2k
