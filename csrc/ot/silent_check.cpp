// SPDX-License-Identifier: Apache-2.0
#include "ot/silent_check.h"

#include <sodium.h>

#include <cstring>
#include <string_view>

#include "crypto/prg.h"
#include "ot/field.h"

namespace privml::ot {

TreeHash::TreeHash(crypto::Block challenge, int depth) : depth_(depth), powers_(i64{1} << depth) {
  crypto::Prg prg(challenge);
  powers_[0] = prg.next_block();
  psi_ = prg.next_block();
  for (size_t j = 1; j < powers_.size(); ++j) {
    powers_[j] = crypto::gf128_multiply(powers_[j - 1], powers_[0]);
  }
}

void TreeHash::add(const crypto::Block* leaves) {
  crypto::WideProduct product{};
  const i64 count = std::ssize(powers_);
  crypto::gf128_inner_products(leaves, 1, count, powers_.data(), count, &product);
  append(crypto::gf128_reduce(product));
}

void TreeHash::append(crypto::Block product) {
  sum_ ^= crypto::gf128_multiply(psi_power_, product);
  psi_power_ = crypto::gf128_multiply(psi_power_, psi_);
}

crypto::Block TreeHash::coefficient(u64 place) const {
  crypto::Block power = powers_[0];
  for (int bit = 0; bit < depth_; ++bit) {
    const u8 taken = static_cast<u8>(place >> bit & 1);
    const crypto::Block factor = powers_[(size_t{1} << bit) - 1];
    power = crypto::gf128_multiply(
        power, crypto::select(taken, factor) ^ crypto::select(taken ^ 1, crypto::Block{1, 0}));
  }
  return power;
}

crypto::Block pack_blocks(const crypto::Block* blocks) {
  crypto::Block sum{};
  for (int b = 127; b >= 0; --b) sum = times_x(sum) ^ blocks[b];
  return sum;
}

CheckDigest check_digest(crypto::Block value, u64 matrix) {
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

}  // namespace privml::ot
