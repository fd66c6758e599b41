// SPDX-License-Identifier: Apache-2.0
// Lists of small numbers on the wire: every element has `rows` numbers of `width` bits.
// An element's numbers are packed without gaps, little-endian, into ceil(rows * width / 8) bytes;
// byte k of all elements of a group of 64 lie side by side, then byte k + 1, then the next group.
// So n elements take exactly n * ceil(rows * width / 8) bytes, any run of whole groups is
// contiguous, and packing never moves a bit to another lane. The last group may be shorter.
// Device header.
#pragma once

#include "threepc/device.h"

namespace privml::threepc {
namespace {

PRIVML_DEVICE i64 packed_rows(int rows, int width) {
  return (static_cast<i64>(rows) * width + 7) / 8;
}

// Where the part of a group that one W covers lies: row k begins at base + k * stride, and `valid`
// of its bytes exist (at most sizeof(W); none or fewer: nothing is read or written).
struct Place {
  i64 offset;
  int stride;
  int valid;
};

// The part that begins with quad `quad` of group `group`, of `count` elements with `bytes` bytes.
PRIVML_DEVICE Place place_of(i64 count, i64 bytes, i64 group, int quad, int quads) {
  const i64 left = count - group * kGroup;
  const int stride = left < kGroup ? static_cast<int>(left) : kGroup;
  const int after = stride - 4 * quad;
  return {group * kGroup * bytes + 4 * quad, stride, after < 4 * quads ? after : 4 * quads};
}

template <class W>
PRIVML_DEVICE W load_row(const u8* base, const Place& place, i64 row) {
  const u8* from = base + place.offset + row * place.stride;
  W value = splat<W>(0);
#ifdef __CUDACC__
  if (place.valid == 4 && (place.stride & 3) == 0) return *reinterpret_cast<const u32*>(from);
  for (int e = 0; e < place.valid; ++e) value |= static_cast<u32>(from[e]) << (8 * e);
#else
  if (place.valid == static_cast<int>(sizeof(W))) {
    std::memcpy(&value, from, sizeof(W));
  } else if (place.valid > 0) {
    std::memcpy(&value, from, place.valid);
  }
#endif
  return value;
}

template <class W>
PRIVML_DEVICE void store_row(u8* base, const Place& place, i64 row, const W& value) {
  u8* to = base + place.offset + row * place.stride;
#ifdef __CUDACC__
  if (place.valid == 4 && (place.stride & 3) == 0) {
    *reinterpret_cast<u32*>(to) = value;
  } else {
    for (int e = 0; e < place.valid; ++e) to[e] = static_cast<u8>(value >> (8 * e));
  }
#else
  if (place.valid == static_cast<int>(sizeof(W))) {
    std::memcpy(to, &value, sizeof(W));
  } else if (place.valid > 0) {
    std::memcpy(to, &value, place.valid);
  }
#endif
}

// Shifts inside the lanes, 0 <= by < 8.
template <class W>
PRIVML_DEVICE W lanes_left(const W& x, int by) {
  return (x & ((0xffu >> by) * kLaneOne)) << by;
}
template <class W>
PRIVML_DEVICE W lanes_right(const W& x, int by) {
  return (x >> by) & ((0xffu >> by) * kLaneOne);
}

// Packs one number of `width` <= 7 bits after another; call finish after the last one.
template <class W>
struct RowWriter {
  u8* base;
  Place place;
  W open = splat<W>(0);
  int used = 0;
  i64 row = 0;

  PRIVML_DEVICE void put(const W& value, int width) {
    open |= lanes_left(value, used);
    used += width;
    if (used < 8) return;
    store_row(base, place, row++, open);
    used -= 8;
    open = lanes_right(value, width - used);
  }
  PRIVML_DEVICE void finish() {
    if (used > 0) store_row(base, place, row, open);
  }
};

// Reads one number after another, as RowWriter wrote them.
template <class W>
struct RowReader {
  const u8* base;
  Place place;
  W open = splat<W>(0);
  int left = 0;  // unread bits of `open`, its lowest ones
  i64 row = 0;

  PRIVML_DEVICE W take(int width) {
    W value = open;
    if (left < width) {
      const W next = load_row<W>(base, place, row++);
      value |= lanes_left(next, left);
      open = lanes_right(next, width - left);
      left += 8 - width;
    } else {
      open = lanes_right(open, width);
      left -= width;
    }
    return value & (((1u << width) - 1) * kLaneOne);
  }
};

}  // namespace
}  // namespace privml::threepc
