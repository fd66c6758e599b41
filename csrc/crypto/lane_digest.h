// SPDX-License-Identifier: Apache-2.0
// A collision-resistant digest of long messages at several bytes per cycle, for Fiat-Shamir
// transcripts of OT extensions.
//
// Method      the message, padded with zeros to whole kilobytes, is dealt word by word to eight
//             lanes; each lane is hashed by BLAKE2b-256 (RFC 7693), all in step in the lanes of
//             vector registers; the digest is BLAKE2b-256 of the length and the eight lane digests.
// Assumption  that of BLAKE2b: lanes and length determine the message, so a collision here is one
//             there.
#pragma once

#include <array>

#include "base/types.h"

namespace privml::crypto {

using LaneDigest = std::array<u8, 32>;

LaneDigest lane_digest(Bytes message);

// The instruction set that it uses.
const char* lane_digest_kernel();

namespace lanes {

inline constexpr int kLanes = 8;
inline constexpr i64 kLaneBlock = 128;  // what one compression takes from each lane
inline constexpr i64 kGroup = kLanes * kLaneBlock;
inline constexpr u64 kStart[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                  0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                  0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Takes `groups` times 128 bytes into every lane; `counter` bytes were there before, `last` marks
// the end of the message. Word i of lane j of the state is state[8 * i + j]. The same with each
// instruction set; all but the portable one exist on x86-64 only.
using Compress = void(u64* state, const u8* message, i64 groups, u64 counter, bool last);
Compress compress_portable, compress_avx2, compress_avx512;
bool avx2_supported();
bool avx512_supported();

}  // namespace lanes

}  // namespace privml::crypto
