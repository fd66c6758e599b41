// SPDX-License-Identifier: Apache-2.0
// Three parties of a sign-bit extraction in one process, and the contents of their lists.
#pragma once

#include <random>
#include <vector>

#include "threepc/kernels.h"

namespace privml::threepc {

using Numbers = std::vector<u8>;
using Elements = std::vector<i64>;

inline std::vector<KernelBackend> supported_backends() {
  std::vector<KernelBackend> all;
  for (auto b : {KernelBackend::portable, KernelBackend::avx2, KernelBackend::avx512})
    if (kernel_backend_supported(b)) all.push_back(b);
  return all;
}

constexpr u32 kDealKey[8] = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr u32 kMaskKey[8] = {11, 12, 13, 14, 15, 16, 17, 18};

struct SignCase {
  SignField field;
  Elements m, r;
  Numbers delta, rotation;
  u64 deal_counter = 5, mask_counter = 1000;

  i64 count() const { return std::ssize(m); }
  void draw(u64 seed) {
    std::mt19937_64 random(seed);
    delta.resize(m.size());
    rotation.resize(m.size());
    for (auto& d : delta) d = random() & 1;
    for (auto& s : rotation) s = random() % field.bits;
  }
};

struct SignLists {
  Numbers dealt, first, second, zero;
};

// Party 0 takes `dealt`, party 1 the key.
inline MaskJob mask_job(const SignCase& c, int party, const Numbers& dealt, Numbers& out) {
  MaskJob job{};
  job.field = c.field;
  job.party = party;
  job.m = c.m.data();
  job.delta = c.delta.data();
  job.rotation = c.rotation.data();
  job.count = c.count();
  job.dealt = party == 0 ? dealt.data() : nullptr;
  job.deal_key = party == 1 ? kDealKey : nullptr;
  job.deal_counter = c.deal_counter;
  job.mask_key = kMaskKey;
  job.mask_counter = c.mask_counter;
  job.out = out.data();
  return job;
}

inline SignLists run_sign(const SignCase& c, const Loops& loops = {}) {
  const i64 n = c.count();
  SignLists lists;
  lists.dealt.resize(deal_bytes(c.field, n));
  lists.first.resize(mask_bytes(c.field, n));
  lists.second.resize(mask_bytes(c.field, n));
  lists.zero.resize(n);
  deal_sign({c.field, c.r.data(), n, kDealKey, c.deal_counter, lists.dealt.data()}, loops);
  mask_sign(mask_job(c, 0, lists.dealt, lists.first), loops);
  mask_sign(mask_job(c, 1, lists.dealt, lists.second), loops);
  open_sign({c.field, lists.first.data(), lists.second.data(), n, lists.zero.data()}, loops);
  return lists;
}

// The sign as parties 0, 1 and 2 would have it from z and delta.
inline int sign_from(const SignCase& c, i64 i, u8 zero) {
  const u64 negated = -static_cast<u64>(c.r[i]);
  return static_cast<int>(negated >> (c.field.bits - 1) & 1) ^ (zero ^ 1) ^ c.delta[i];
}

inline int clear_sign(const SignCase& c, i64 i) {
  const u64 x = static_cast<u64>(c.m[i]) - static_cast<u64>(c.r[i]);
  return static_cast<int>(x >> (c.field.bits - 1) & 1);
}

// Number `row` of element `i` in a list of `rows` rows, read bit by bit.
inline int list_number(const Numbers& list, i64 count, int rows, int width, i64 i, int row) {
  const i64 group = i / 64, bytes = (rows * width + 7) / 8;
  const i64 stride = std::min<i64>(64, count - group * 64);
  int value = 0;
  for (int b = 0; b < width; ++b) {
    const int bit = row * width + b;
    const u8 byte = list[group * 64 * bytes + bit / 8 * stride + i % 64];
    value |= (byte >> (bit % 8) & 1) << b;
  }
  return value;
}

}  // namespace privml::threepc
