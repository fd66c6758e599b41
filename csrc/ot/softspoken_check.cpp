// SPDX-License-Identifier: Apache-2.0
#include "ot/softspoken_check.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "crypto/aes.h"
#include "crypto/lane_digest.h"

namespace privml::ot {
namespace {

Bytes text(std::string_view label) {
  return {reinterpret_cast<const u8*>(label.data()), label.size()};
}

// The parts have lengths that the label determines.
CheckDigest hash(std::string_view label, std::initializer_list<Bytes> parts) {
  crypto_generichash_state state;
  CheckDigest out;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, text(label).data(), label.size());
  for (Bytes part : parts) crypto_generichash_update(&state, part.data(), part.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

}  // namespace

SoftSpokenCheck::SoftSpokenCheck(Bytes context, Bytes seeds)
    : chain_(hash("privml softspoken", {context, crypto::lane_digest(seeds)})),
      rows_(kSoftSpokenRows) {}

crypto::Block SoftSpokenCheck::offset_key() const {
  crypto::Block key;
  const CheckDigest digest = hash("privml softspoken offsets", {chain_});
  std::memcpy(&key, digest.data(), sizeof key);
  return key;
}

void SoftSpokenCheck::begin() {
  std::fill(rows_.begin(), rows_.end(), crypto::WideProduct{});
  choices_ = {};
  first_ = true;
}

void SoftSpokenCheck::absorb(Bytes message, i64 blocks) {
  chain_ = hash("privml softspoken slice", {chain_, crypto::lane_digest(message)});
  std::array<crypto::Block, 2> seed;
  std::memcpy(&seed, chain_.data(), sizeof(seed));
  coefficients_.resize(blocks);
  crypto::Aes128(seed[0]).encrypt_counter(seed[1], coefficients_.data(), blocks);
  if (first_) coefficients_[0] = {1, 0};
  first_ = false;
}

void SoftSpokenCheck::add_rows(const crypto::Block* rows, i64 stride) {
  crypto::gf128_inner_products(rows, kSoftSpokenRows, stride, coefficients_.data(),
                               std::ssize(coefficients_), rows_.data());
}

void SoftSpokenCheck::add_choices(const crypto::Block* choices) {
  const i64 blocks = std::ssize(coefficients_);
  crypto::gf128_inner_products(choices, 1, blocks, coefficients_.data(), blocks, &choices_);
}

SoftSpokenProof SoftSpokenCheck::prove() {
  WipedVector<crypto::Block> hashes(kSoftSpokenRows);
  std::transform(rows_.begin(), rows_.end(), hashes.begin(), crypto::gf128_reduce);
  const SoftSpokenProof proof{crypto::gf128_reduce(choices_), digest(hashes)};
  absorb_proof(proof);
  return proof;
}

bool SoftSpokenCheck::verify(const SoftSpokenProof& proof, crypto::Block delta) {
  WipedVector<crypto::Block> hashes(kSoftSpokenRows);
  for (int r = 0; r < kSoftSpokenRows; ++r) {
    const u64 word = r < 64 ? delta.lo : delta.hi;
    hashes[r] = crypto::gf128_reduce(rows_[r]) ^
                crypto::select(static_cast<u8>(word >> (r % 64) & 1), proof.choices);
  }
  const CheckDigest expected = digest(hashes);
  absorb_proof(proof);
  return sodium_memcmp(expected.data(), proof.digest.data(), expected.size()) == 0;
}

CheckDigest SoftSpokenCheck::digest(std::span<const crypto::Block> hashes) const {
  return hash("privml softspoken rows",
              {chain_, {reinterpret_cast<const u8*>(hashes.data()), hashes.size_bytes()}});
}

void SoftSpokenCheck::absorb_proof(const SoftSpokenProof& proof) {
  chain_ = hash("privml softspoken proof",
                {chain_, {reinterpret_cast<const u8*>(&proof), sizeof(proof)}});
}

}  // namespace privml::ot
