// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/commitment.h"

#include <sodium.h>

#include <cstring>

namespace privml::spdz2k {

Commitment commit(const char* label, int rank, u64 number, Bytes message) {
  crypto_generichash_state state;
  Commitment out;
  const u64 header[3] = {std::strlen(label), static_cast<u64>(rank), number};
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(header), sizeof header);
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(label), header[0]);
  crypto_generichash_update(&state, message.data(), message.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

bool opens(const Commitment& commitment, const char* label, int rank, u64 number, Bytes message) {
  const Commitment expected = commit(label, rank, number, message);
  return sodium_memcmp(expected.data(), commitment.data(), expected.size()) == 0;
}

}  // namespace privml::spdz2k
