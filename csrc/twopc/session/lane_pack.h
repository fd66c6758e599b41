// SPDX-License-Identifier: Apache-2.0
// Bit packing for long vectors of ring elements, laid out so that vector instructions pack without
// crossing lanes: 256 words form a group, word e lies in lane e mod L (L = 32 / sizeof(Word)), and
// every lane is packed little-endian by itself; lanes are interleaved word by word. Words after the
// last whole group are packed one after another. `count` words take packed_bytes(count, width)
// bytes. (The layout follows Lemire and Boytsov, "Decoding billions of integers per second", 2015.)
#pragma once

#include "base/types.h"

namespace privml::twopc {

// 1 <= width <= 8 * sizeof(Word), Word is u32 or u64; bits of a word above `width` are ignored.
void lane_pack(const u32* words, i64 count, int width, u8* out);
void lane_pack(const u64* words, i64 count, int width, u8* out);
// The bits above `width` are zero.
void lane_unpack(const u8* bytes, i64 count, int width, u32* out);
void lane_unpack(const u8* bytes, i64 count, int width, u64* out);

}  // namespace privml::twopc
