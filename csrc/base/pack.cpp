// SPDX-License-Identifier: Apache-2.0
#include "base/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace privml {
namespace {

u64 load_word(const u8* bytes) {
  u64 word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void store_word(u64 word, u8* bytes) { std::memcpy(bytes, &word, sizeof word); }

// Eight bits, one per byte, into one byte and back.
u8 gather_bits(u64 bytes) {
  return static_cast<u8>(((bytes & 0x0101010101010101) * 0x0102040810204080) >> 56);
}
u64 spread_bits(u8 bits) {
  const u64 copies = bits * u64{0x0101010101010101} & 0x8040201008040201;
  return ((copies + 0x7f7f7f7f7f7f7f7f) >> 7) & 0x0101010101010101;
}

// Widths that are machine words: every value is narrowed to `Word` and back.
template <class Word, class Value>
void pack_words(const Value* values, i64 count, u8* out) {
  for (i64 i = 0; i < count; ++i) {
    const Word word = static_cast<Word>(values[i]);
    std::memcpy(out + i * static_cast<i64>(sizeof word), &word, sizeof word);
  }
}
template <class Word, class Value>
void unpack_words(const u8* in, i64 count, Value* values) {
  for (i64 i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, in + i * static_cast<i64>(sizeof word), sizeof word);
    values[i] = static_cast<Value>(word);
  }
}

// width < 64
template <class Value>
void pack_stream(const Value* values, i64 count, int width, u8* out) {
  const u64 mask = low_mask(width);
  u64 open = 0;
  int used = 0;
  for (i64 i = 0; i < count; ++i) {
    const u64 value = values[i] & mask;
    open |= value << used;
    used += width;
    if (used >= 64) {
      store_word(open, out);
      out += 8;
      used -= 64;
      open = value >> (width - used);
    }
  }
  for (; used > 0; used -= 8, open >>= 8) *out++ = static_cast<u8>(open);
}

// width < 64
template <class Value>
void unpack_stream(const u8* bytes, i64 count, int width, Value* out) {
  const u64 mask = low_mask(width);
  const i64 total = packed_bytes(count, width);
  i64 i = 0, bit = 0;
  // Eight bytes cover any value of up to 57 bits, nine any other; stop where they would read past
  // the end.
  if (width <= 57) {
    for (; i < count && bit / 8 + 8 <= total; ++i, bit += width) {
      out[i] = static_cast<Value>(load_word(bytes + bit / 8) >> (bit % 8) & mask);
    }
  } else {
    for (; i < count && bit / 8 + 9 <= total; ++i, bit += width) {
      const u8* at = bytes + bit / 8;
      const u64 high = (u64{at[8]} << 1) << (63 - bit % 8);
      out[i] = static_cast<Value>((load_word(at) >> (bit % 8) | high) & mask);
    }
  }
  for (; i < count; ++i, bit += width) {
    u8 tail[16] = {};
    const i64 first = bit / 8;
    std::memcpy(tail, bytes + first, static_cast<size_t>(std::min<i64>(16, total - first)));
    u128 both;
    std::memcpy(&both, tail, sizeof both);
    out[i] = static_cast<Value>(static_cast<u64>(both >> (bit % 8)) & mask);
  }
}

template <class Value>
void pack_bits(const Value* values, i64 count, u8* out) {
  i64 i = 0;
  for (; i + 8 <= count; i += 8) {
    u64 bytes = 0;
    if constexpr (sizeof(Value) == 1) {
      bytes = load_word(values + i);
      out[i / 8] = gather_bits(bytes);
    } else {
      for (int j = 0; j < 8; ++j) bytes |= (values[i + j] & 1) << j;
      out[i / 8] = static_cast<u8>(bytes);
    }
  }
  if (i < count) {
    u8 last = 0;
    for (i64 j = i; j < count; ++j) last |= static_cast<u8>((values[j] & 1) << (j - i));
    out[i / 8] = last;
  }
}

template <class Value>
void unpack_bits(const u8* bytes, i64 count, Value* out) {
  i64 i = 0;
  for (; i + 8 <= count; i += 8) {
    if constexpr (sizeof(Value) == 1) {
      store_word(spread_bits(bytes[i / 8]), out + i);
    } else {
      for (int j = 0; j < 8; ++j) out[i + j] = bytes[i / 8] >> j & 1;
    }
  }
  for (; i < count; ++i) out[i] = bytes[i / 8] >> (i % 8) & 1;
}

// The low `width` bits of eight bytes, gap-free, and back; width <= 8.
u64 squeeze_bytes(u64 x, int width) {
  x &= low_mask(width) * 0x0101010101010101;
  x = (x & 0x00ff00ff00ff00ff) | (x & 0xff00ff00ff00ff00) >> (8 - width);
  x = (x & 0x0000ffff0000ffff) | (x & 0xffff0000ffff0000) >> (16 - 2 * width);
  return (x & 0x00000000ffffffff) | (x & 0xffffffff00000000) >> (32 - 4 * width);
}
u64 stretch_bytes(u64 x, int width) {
  x = (x & low_mask(4 * width)) | (x << (32 - 4 * width) & 0xffffffff00000000);
  const u64 pairs = low_mask(2 * width) * 0x0000000100000001;
  x = (x & pairs) | (x << (16 - 2 * width) & pairs << 16);
  const u64 singles = low_mask(width) * 0x0001000100010001;
  return (x & singles) | (x << (8 - width) & singles << 8);
}

// Eight values make `width` whole bytes. Words are stored and loaded whole where the array goes on
// that far; the rest goes one by one.
void pack_bytes(const u8* values, i64 count, int width, u8* out) {
  const i64 total = packed_bytes(count, width);
  i64 i = 0, at = 0;
  for (; at + 8 <= total; i += 8, at += width)
    store_word(squeeze_bytes(load_word(values + i), width), out + at);
  pack_stream(values + i, count - i, width, out + at);
}
void unpack_bytes(const u8* bytes, i64 count, int width, u8* out) {
  const i64 total = packed_bytes(count, width);
  i64 i = 0, at = 0;
  for (; i + 8 <= count && at + 8 <= total; i += 8, at += width)
    store_word(stretch_bytes(load_word(bytes + at), width), out + i);
  unpack_stream(bytes + at, count - i, width, out + i);
}

// Eight values make `width` whole bytes, at places that the compiler knows. Words are stored and
// loaded whole, so that up to eight bytes beyond the group are touched.
template <int width>
[[gnu::always_inline]] inline void pack_eight(const u64* values, u8* out) {
  u64 open = 0;
  int used = 0, at = 0;
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const u64 value = values[j] & low_mask(width);
    open |= value << used;
    used += width;
    if (used < 64) continue;
    store_word(open, out + at);
    at += 8;
    used -= 64;
    open = used == 0 ? 0 : value >> (width - used);
  }
  if (used > 0) store_word(open, out + at);
}

template <int width>
[[gnu::always_inline]] inline void unpack_eight(const u8* bytes, u64* values) {
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const int first = j * width / 8, inside = j * width % 8;
    u64 value = load_word(bytes + first) >> inside;
    if (inside + width > 64) value |= u64{bytes[first + 8]} << ((64 - inside) % 64);
    values[j] = value & low_mask(width);
  }
}

// work(value, byte) at the groups of eight values of an array that leave room; returns how many
// values these hold.
template <class Work>
[[gnu::always_inline]] inline i64 in_groups(i64 count, int width, const Work& work) {
  const i64 total = packed_bytes(count, width);
  i64 i = 0;
  for (i64 at = 0; i + 8 <= count && at + width + 8 <= total; i += 8, at += width) work(i, at);
  return i;
}

template <int width>
i64 pack_groups(const u64* values, i64 count, u8* out) {
  return in_groups(count, width, [&](i64 i, i64 at) { pack_eight<width>(values + i, out + at); });
}

template <int width>
i64 unpack_groups(const u8* bytes, i64 count, u64* values) {
  return in_groups(count, width,
                   [&](i64 i, i64 at) { unpack_eight<width>(bytes + at, values + i); });
}

struct Groups {
  i64 (*pack)(const u64*, i64, u8*);
  i64 (*unpack)(const u8*, i64, u64*);
};

template <int... widths>
constexpr std::array<Groups, sizeof...(widths)> groups_of(std::integer_sequence<int, widths...>) {
  return {Groups{pack_groups<widths + 1>, unpack_groups<widths + 1>}...};
}

// Of widths 1, 2, ..., 63.
constexpr auto kGroups = groups_of(std::make_integer_sequence<int, 63>());

template <class Value>
void pack_any(const Value* values, i64 count, int width, u8* out) {
  if (width == 1) return pack_bits(values, count, out);
  switch (width) {
    case 8:
      return pack_words<u8>(values, count, out);
    case 16:
      return pack_words<u16>(values, count, out);
    case 32:
      return pack_words<u32>(values, count, out);
    case 64:
      return pack_words<u64>(values, count, out);
  }
  if constexpr (sizeof(Value) == 1) {
    pack_bytes(values, count, width, out);
  } else {
    const i64 done = kGroups[width - 1].pack(values, count, out);
    pack_stream(values + done, count - done, width, out + done / 8 * width);
  }
}

template <class Value>
void unpack_any(const u8* bytes, i64 count, int width, Value* out) {
  if (width == 1) return unpack_bits(bytes, count, out);
  switch (width) {
    case 8:
      return unpack_words<u8>(bytes, count, out);
    case 16:
      return unpack_words<u16>(bytes, count, out);
    case 32:
      return unpack_words<u32>(bytes, count, out);
    case 64:
      return unpack_words<u64>(bytes, count, out);
  }
  if constexpr (sizeof(Value) == 1) {
    unpack_bytes(bytes, count, width, out);
  } else {
    const i64 done = kGroups[width - 1].unpack(bytes, count, out);
    unpack_stream(bytes + done / 8 * width, count - done, width, out + done);
  }
}

void check_width(int width, int largest) {
  expect(width >= 1 && width <= largest, "a packed width lies in [1, 64], for bytes in [1, 8]");
}

}  // namespace

void pack(const u64* values, i64 count, int width, u8* out) {
  check_width(width, 64);
  pack_any(values, count, width, out);
}
void pack(const u8* values, i64 count, int width, u8* out) {
  check_width(width, 8);
  pack_any(values, count, width, out);
}
void unpack(const u8* bytes, i64 count, int width, u64* out) {
  check_width(width, 64);
  unpack_any(bytes, count, width, out);
}
void unpack(const u8* bytes, i64 count, int width, u8* out) {
  check_width(width, 8);
  unpack_any(bytes, count, width, out);
}

}  // namespace privml
