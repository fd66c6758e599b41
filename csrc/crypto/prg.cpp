// SPDX-License-Identifier: Apache-2.0
#include "crypto/prg.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace privml::crypto {

Prg::Prg(Block seed) : aes_(seed) {}

void Prg::fill_blocks(Block* out, i64 count) {
  aes_.encrypt_counter(counter_, out, count);
  counter_.lo += static_cast<u64>(count);
}

void Prg::fill_bytes(MutableBytes out) {
  constexpr size_t kTile = 256;
  std::array<Block, kTile> tile;
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min(out.size() - done, kTile * sizeof(Block));
    fill_blocks(tile.data(), ceil_div(static_cast<i64>(n), sizeof(Block)));
    std::memcpy(out.data() + done, tile.data(), n);
    done += n;
  }
}

void Prg::fill_ring(std::span<u64> out, int bits) {
  fill_bytes({reinterpret_cast<u8*>(out.data()), out.size_bytes()});
  const u64 mask = low_mask(bits);
  for (u64& x : out) x &= mask;
}

void Prg::fill_bits(std::span<u8> out) {
  fill_bytes(out);
  for (u8& x : out) x &= 1;
}

Block Prg::next_block() {
  Block out;
  fill_blocks(&out, 1);
  return out;
}

Block os_random_block() {
  static const bool ready = sodium_init() >= 0;
  expect(ready, "libsodium could not be initialised");
  Block out;
  randombytes_buf(&out, sizeof out);
  return out;
}

}  // namespace privml::crypto
