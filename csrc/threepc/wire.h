// SPDX-License-Identifier: Apache-2.0
// Numbers of `bits` bits packed without gaps, little-endian, as base/pack.h does on a CPU: value i
// occupies bits [i * bits, (i + 1) * bits) of the bytes. One byte or one value per thread.
// Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

// Byte `at` of `count` packed values of 1..64 bits.
template <class Value>
PRIVML_DEVICE u8 packed_byte(const Value* values, i64 count, int bits, i64 at) {
  u32 byte = 0;
  for (int bit = 0; bit < 8;) {
    const i64 place = at * 8 + bit, index = place / bits;
    if (index >= count) break;
    const int inside = static_cast<int>(place - index * bits);
    const int room = 8 - bit, rest = bits - inside;
    const int taken = rest < room ? rest : room;
    const u32 part = static_cast<u32>(static_cast<u64>(values[index]) >> inside);
    byte |= (part & ((1u << taken) - 1)) << bit;
    bit += taken;
  }
  return static_cast<u8>(byte);
}

// Value `index` of packed bytes.
PRIVML_DEVICE u64 unpacked_value(const u8* bytes, int bits, i64 index) {
  u64 value = 0;
  for (int done = 0; done < bits;) {
    const i64 place = index * bits + done;
    const int inside = static_cast<int>(place & 7);
    const int room = 8 - inside, rest = bits - done;
    const int taken = rest < room ? rest : room;
    const u32 part = (static_cast<u32>(bytes[place >> 3]) >> inside) & ((1u << taken) - 1);
    value |= static_cast<u64>(part) << done;
    done += taken;
  }
  return value;
}

}  // namespace
}  // namespace privml::threepc
