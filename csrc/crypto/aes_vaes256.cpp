// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"
#include "crypto/wide.h"

namespace privml::crypto::aes {

i64 encrypt_vaes256(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_groups<Wide256>(keys, in, out, count, feedforward);
}

i64 count_vaes256(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide256>(keys, first, out, count);
}

}  // namespace privml::crypto::aes
#endif
