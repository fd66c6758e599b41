// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"
#include "crypto/wide.h"

namespace privml::crypto::aes {

i64 encrypt_avx2(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_all<Wide128>(keys, in, out, count, feedforward);
}

i64 count_avx2(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide128>(keys, first, out, count);
}

}  // namespace privml::crypto::aes
#endif
