// SPDX-License-Identifier: Apache-2.0
// Commitments by a hash (BLAKE2b, random oracle): binding, and hiding if the message contains
// 128 bits that only the committing party knows. The hash includes the committing party, so a
// copied commitment cannot be opened.
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
