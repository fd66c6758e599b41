// SPDX-License-Identifier: Apache-2.0
#include "ot/silent_check.h"

#include <sodium.h>

#include <cstring>
#include <string_view>

#include "crypto/prg.h"
#include "ot/field.h"

namespace privml {

TreeHash::TreeHash(Block challenge, int depth) : depth_(depth), powers_(i64{1} << depth) {
  Prg prg(challenge);
  powers_[0] = prg.next_block();
  psi_ = prg.next_block();
  for (size_t j = 1; j < powers_.size(); ++j) {
    powers_[j] = gf128_multiply(powers_[j - 1], powers_[0]);
  }
}

void TreeHash::add(const Block* leaves) {
  WideProduct product{};
  const i64 count = std::ssize(powers_);
  gf128_inner_products(leaves, 1, count, powers_.data(), count, &product);
  append(gf128_reduce(product));
}

void TreeHash::append(Block product) {
  sum_ ^= gf128_multiply(psi_power_, product);
  psi_power_ = gf128_multiply(psi_power_, psi_);
}

Block TreeHash::coefficient(u64 place) const {
  Block power = powers_[0];
  for (int bit = 0; bit < depth_; ++bit) {
    const u8 taken = static_cast<u8>(place >> bit & 1);
    const Block factor = powers_[(size_t{1} << bit) - 1];
    power = gf128_multiply(power, select(taken, factor) ^ select(taken ^ 1, Block{1, 0}));
  }
  return power;
}

Block pack_blocks(const Block* blocks) {
  Block sum{};
  for (int b = 127; b >= 0; --b) sum = times_x(sum) ^ blocks[b];
  return sum;
}

CheckDigest check_digest(Block value, u64 matrix) {
  constexpr std::string_view kLabel = "privml silent OT check";
  CheckDigest digest;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, digest.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(kLabel.data()), kLabel.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(&matrix), sizeof(matrix));
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(&value), sizeof(value));
  crypto_generichash_final(&state, digest.data(), digest.size());
  return digest;
}

}  // namespace privml
