// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/carry_proof.h"

#include "ot/field.h"

namespace privml::spdz2k {
namespace {

constexpr int kMostBits = 64;

// sum_i X^i * blocks[i]
crypto::Block combine(const crypto::Block* blocks) {
  crypto::Block sum = crypto::kZeroBlock;
  for (i64 i = kProofMasks - 1; i >= 0; --i) sum = ot::times_x(sum) ^ blocks[i];
  return sum;
}

}  // namespace

void CarryProver::add(BitRow x, BitRow y, u64 sum) {
  crypto::Block coefficients[kMostBits], products[kMostBits], linear[kMostBits];
  coefficients_.fill_blocks(coefficients, k_);
  for (int b = 0; b + 1 < k_; ++b) {
    const crypto::Block tx = x.at(b), ty = y.at(b);
    const u8 s = static_cast<u8>(sum >> b & 1);
    const u8 u = crypto::low_bit(ty) ^ s, v = crypto::low_bit(tx) ^ s;
    products[b] = crypto::gf128_multiply(tx, ty);
    linear[b] = crypto::select(u, tx) ^ crypto::select(v, ty) ^ tx ^ ty ^ x.at(b + 1) ^ y.at(b + 1);
  }
  linear[k_ - 1] = x.at(0) ^ y.at(0);  // c_0 = 0
  crypto::gf128_inner_products(products, 1, k_, coefficients, k_ - 1, &constant_);
  crypto::gf128_inner_products(linear, 1, k_, coefficients, k_, &linear_);
}

std::array<crypto::Block, 2> CarryProver::finish(const crypto::Block* masks) {
  crypto::Block mask_bits = crypto::kZeroBlock;
  for (int i = 0; i < kProofMasks; ++i) {
    (i < 64 ? mask_bits.lo : mask_bits.hi) |= u64{crypto::low_bit(masks[i])} << (i % 64);
  }
  return {crypto::gf128_reduce(constant_) ^ combine(masks),
          crypto::gf128_reduce(linear_) ^ mask_bits};
}

void CarryVerifier::add(BitRow x, BitRow y, u64 sum) {
  crypto::Block coefficients[kMostBits], products[kMostBits], linear[kMostBits];
  coefficients_.fill_blocks(coefficients, k_);
  // A public bit s has t = 0 and q = s * Delta.
  const auto offset = [&](int b) { return crypto::select(static_cast<u8>(sum >> b & 1), delta_); };
  for (int b = 0; b + 1 < k_; ++b) {
    const crypto::Block qx = x.at(b), qy = y.at(b);
    products[b] = crypto::gf128_multiply(qx ^ offset(b), qy ^ offset(b));
    linear[b] = qx ^ qy ^ offset(b) ^ x.at(b + 1) ^ y.at(b + 1) ^ offset(b + 1);
  }
  linear[k_ - 1] = x.at(0) ^ y.at(0) ^ offset(0);
  crypto::gf128_inner_products(products, 1, k_, coefficients, k_ - 1, &products_);
  crypto::gf128_inner_products(linear, 1, k_, coefficients, k_, &linear_);
}

bool CarryVerifier::verify(const crypto::Block* masks, const std::array<crypto::Block, 2>& proof) {
  const crypto::Block left = crypto::gf128_reduce(products_) ^
                             crypto::gf128_multiply(delta_, crypto::gf128_reduce(linear_)) ^
                             combine(masks);
  return left == (proof[0] ^ crypto::gf128_multiply(delta_, proof[1]));
}

}  // namespace privml::spdz2k
