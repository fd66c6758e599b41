// SPDX-License-Identifier: Apache-2.0
// Gap-free little-endian bit packing: value i occupies bits [i * width, (i + 1) * width) of the
// byte array.
#pragma once

#include "base/types.h"

namespace privml {

// Values of 1 <= width <= 64 bits (at most 8 for bytes); bits above `width` are ignored.
// All throw InvalidArgument for another width. Arrays must not overlap.
// Writes packed_bytes(count, width) bytes; unused bits of the last byte are zero.
void pack(const u64* values, i64 count, int width, u8* out);
void pack(const u8* values, i64 count, int width, u8* out);

// Reads packed_bytes(count, width) bytes; bits above `width` of each value are zero.
void unpack(const u8* bytes, i64 count, int width, u64* out);
void unpack(const u8* bytes, i64 count, int width, u8* out);

}  // namespace privml
