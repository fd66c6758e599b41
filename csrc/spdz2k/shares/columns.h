// SPDX-License-Identifier: Apache-2.0
// Messages of words of a few or of many bits: `count` words of `bits` bits go as whole 64-bit limbs
// first, each limb's column on its own, and the rest bit-packed.
#pragma once

#include <algorithm>
#include <array>

#include "base/buffer.h"
#include "base/pack.h"
#include "net/channel.h"
#include "spdz2k/shares/wide.h"

namespace privml::spdz2k {

constexpr i64 kColumnBlock = 512;  // words packed at once

constexpr i64 column_block_bytes(i64 count, int bits) {
  return bits / 64 * count * 8 + packed_bytes(count, bits % 64);
}
// What write_column() sends.
constexpr i64 column_bytes(i64 count, int bits) {
  return count / kColumnBlock * column_block_bytes(kColumnBlock, bits) +
         column_block_bytes(count % kColumnBlock, bits);
}

namespace detail {

// Limb j of a word, and its place.
template <class W>
u64 get_limb(const W& word, int j) {
  u64 limb = 0;
  std::memcpy(&limb, reinterpret_cast<const u8*>(&word) + 8 * j, std::min<size_t>(8, sizeof(W)));
  return limb;
}
template <class W>
void set_limb(W& word, int j, u64 limb) {
  std::memcpy(reinterpret_cast<u8*>(&word) + 8 * j, &limb, std::min<size_t>(8, sizeof(W)));
}

}  // namespace detail

// Bits of the words above `bits` are not sent.
template <class W>
void write_column(net::Channel& channel, const W* words, i64 count, int bits) {
  alignas(64) std::array<u64, kColumnBlock> limbs;
  std::array<u8, 8 * kColumnBlock> packed;
  for (i64 first = 0; first < count; first += kColumnBlock) {
    const i64 n = std::min(kColumnBlock, count - first);
    for (int j = 0; 64 * j < bits; ++j) {
      for (i64 i = 0; i < n; ++i) limbs[i] = detail::get_limb(words[first + i], j);
      const int width = std::min(64, bits - 64 * j);
      pack(limbs.data(), n, width, packed.data());
      channel.write({packed.data(), static_cast<size_t>(packed_bytes(n, width))});
    }
  }
}

// Bits above `bits` become zero.
template <class W>
void read_column(net::Channel& channel, W* words, i64 count, int bits) {
  alignas(64) std::array<u64, kColumnBlock> limbs;
  std::array<u8, 8 * kColumnBlock> packed;
  for (i64 first = 0; first < count; first += kColumnBlock) {
    const i64 n = std::min(kColumnBlock, count - first);
    std::memset(static_cast<void*>(words + first), 0, static_cast<size_t>(n) * sizeof(W));
    for (int j = 0; 64 * j < bits; ++j) {
      const int width = std::min(64, bits - 64 * j);
      channel.read({packed.data(), static_cast<size_t>(packed_bytes(n, width))});
      unpack(packed.data(), n, width, limbs.data());
      for (i64 i = 0; i < n; ++i) detail::set_limb(words[first + i], j, limbs[i]);
    }
  }
}

}  // namespace privml::spdz2k
