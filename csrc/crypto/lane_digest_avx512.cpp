// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/lane_digest_wide.h"

namespace privml::crypto::lanes {
namespace {

struct Avx512 {
  typedef u64 Words __attribute__((vector_size(64)));
  static constexpr int kTogether = 1;
  static Words all(u64 x) { return Words{} + x; }
  template <int bits>
  static Words rotate(Words x) {
    return x >> bits | x << (64 - bits);
  }
};

}  // namespace

void compress_avx512(u64* state, const u8* message, i64 groups, u64 counter, bool last) {
  compress_all<Avx512>(state, message, groups, counter, last);
}

}  // namespace privml::crypto::lanes
#endif
