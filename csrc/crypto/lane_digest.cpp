// SPDX-License-Identifier: Apache-2.0
#include "crypto/lane_digest.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "crypto/lane_digest_wide.h"

namespace privml::crypto {
namespace lanes {
namespace {

struct Portable {
  typedef u64 Words __attribute__((vector_size(16)));
  static constexpr int kTogether = 1;
  static Words all(u64 x) { return Words{} + x; }
  template <int bits>
  static Words rotate(Words x) {
    return x >> bits | x << (64 - bits);
  }
};

}  // namespace

void compress_portable(u64* state, const u8* message, i64 groups, u64 counter, bool last) {
  compress_all<Portable>(state, message, groups, counter, last);
}

bool avx2_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

bool avx512_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace lanes

namespace {

using lanes::kGroup, lanes::kLaneBlock, lanes::kLanes, lanes::kStart;
constexpr int kDigestWords = 4;
// Digest of 32 bytes, no key, sequential mode.
constexpr u64 kParameters = 0x01010000 ^ 32;

struct Choice {
  const char* name;
  lanes::Compress* compress;
};

const Choice& choice() {
  static const Choice chosen = [] {
#if defined(__x86_64__)
    if (cpu_allows(CpuLevel::avx512) && lanes::avx512_supported())
      return Choice{"avx512", lanes::compress_avx512};
    if (cpu_allows(CpuLevel::avx2) && lanes::avx2_supported())
      return Choice{"avx2", lanes::compress_avx2};
#endif
    return Choice{"portable", lanes::compress_portable};
  }();
  return chosen;
}

}  // namespace

const char* lane_digest_kernel() { return choice().name; }

LaneDigest lane_digest(Bytes message) {
  lanes::Compress* const compress = choice().compress;
  u64 state[8 * kLanes];
  for (int i = 0; i < 8 * kLanes; ++i)
    state[i] = kStart[i / kLanes] ^ (i < kLanes ? kParameters : 0);
  // The last group is compressed apart, even if it is whole or the message empty.
  const i64 size = std::ssize(message);
  const i64 before = size == 0 ? 0 : (size - 1) / kGroup;
  compress(state, message.data(), before, 0, false);
  alignas(64) u8 tail[kGroup] = {};
  if (size > 0) {
    std::memcpy(tail, message.data() + before * kGroup,
                static_cast<size_t>(size - before * kGroup));
  }
  compress(state, tail, 1, static_cast<u64>(before * kLaneBlock), true);

  u64 digests[1 + kLanes * kDigestWords] = {static_cast<u64>(size)};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < kDigestWords; ++i)
      digests[1 + kDigestWords * lane + i] = state[i * kLanes + lane];
  }
  LaneDigest out;
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const u8*>(digests), sizeof digests,
                     nullptr, 0);
  return out;
}

}  // namespace privml::crypto
