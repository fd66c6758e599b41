// SPDX-License-Identifier: Apache-2.0
// Commitments by a hash (BLAKE2b, random oracle): binding, and hiding if the message contains
// 128 bits that nobody else knows. The committing party is part of what is hashed, so a copied
// commitment opens to nothing.
#pragma once

#include <array>

#include "base/types.h"

namespace privml::spdz2k {

using Commitment = std::array<u8, 32>;

// `label` names the purpose and `number` the use within it; both are public.
Commitment commit(const char* label, int rank, u64 number, Bytes message);

// In constant time.
bool opens(const Commitment& commitment, const char* label, int rank, u64 number, Bytes message);

}  // namespace privml::spdz2k
