// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/lane_pack.h"

#include <cstring>

#include "base/multiversion.h"

namespace privml::twopc {
namespace {

constexpr i64 kGroup = 256;

template <class Word>
struct Lanes {
  typedef Word Vector __attribute__((vector_size(32)));
  static constexpr int bits = 8 * sizeof(Word);
};

template <class Word>
[[gnu::always_inline]] inline void pack_group(const Word* words, int width, u8* out) {
  using Vector = typename Lanes<Word>::Vector;
  constexpr int bits = Lanes<Word>::bits;
  const Word mask = static_cast<Word>(low_mask(width));
  Vector open{};
  int used = 0;
  for (int slot = 0; slot < bits; ++slot) {
    Vector v;
    std::memcpy(&v, reinterpret_cast<const u8*>(words) + 32 * slot, 32);
    v &= mask;
    open |= v << used;
    used += width;
    if (used < bits) continue;
    std::memcpy(out, &open, 32);
    out += 32;
    used -= bits;
    open = used > 0 ? v >> (width - used) : Vector{};
  }
}

template <class Word>
[[gnu::always_inline]] inline void unpack_group(const u8* bytes, int width, Word* words) {
  using Vector = typename Lanes<Word>::Vector;
  constexpr int bits = Lanes<Word>::bits;
  const Word mask = static_cast<Word>(low_mask(width));
  Vector open{};
  int left = 0;  // bits of `open` not yet used
  for (int slot = 0; slot < bits; ++slot) {
    Vector v;
    if (left >= width) {
      v = open >> (bits - left);
      left -= width;
    } else {
      v = left > 0 ? open >> (bits - left) : Vector{};
      std::memcpy(&open, bytes, 32);
      bytes += 32;
      v |= open << left;
      left += bits - width;
    }
    v &= mask;
    std::memcpy(reinterpret_cast<u8*>(words) + 32 * slot, &v, 32);
  }
}

template <class Word>
void pack_tail(const Word* words, i64 count, int width, u8* out) {
  u128 open = 0;
  int used = 0;
  for (i64 i = 0; i < count; ++i) {
    open |= static_cast<u128>(words[i] & low_mask(width)) << used;
    used += width;
    if (used < 64) continue;
    const u64 full = static_cast<u64>(open);
    std::memcpy(out, &full, 8);
    out += 8;
    open >>= 64;
    used -= 64;
  }
  const u64 rest = static_cast<u64>(open);
  std::memcpy(out, &rest, static_cast<size_t>(ceil_div(used, 8)));
}

template <class Word>
void unpack_tail(const u8* bytes, i64 count, int width, Word* out) {
  const u8* const end = bytes + packed_bytes(count, width);
  u128 open = 0;
  int available = 0;
  for (i64 i = 0; i < count; ++i) {
    if (available < width) {
      u64 next = 0;
      const i64 step = end - bytes < 8 ? end - bytes : 8;
      std::memcpy(&next, bytes, static_cast<size_t>(step));
      bytes += step;
      open |= static_cast<u128>(next) << available;
      available += 64;
    }
    out[i] = static_cast<Word>(static_cast<u64>(open) & low_mask(width));
    open >>= width;
    available -= width;
  }
}

template <class Word>
[[gnu::always_inline]] inline void pack_groups(const Word* words, i64 groups, int width, u8* out) {
  for (i64 g = 0; g < groups; ++g) pack_group(words + g * kGroup, width, out + g * 32 * width);
}

template <class Word>
[[gnu::always_inline]] inline void unpack_groups(const u8* bytes, i64 groups, int width,
                                                 Word* out) {
  for (i64 g = 0; g < groups; ++g) unpack_group(bytes + g * 32 * width, width, out + g * kGroup);
}

// One compiled form per instruction set; the loader picks the best one.
PRIVML_TARGET_CLONES
void pack32(const u32* words, i64 groups, int width, u8* out) {
  pack_groups(words, groups, width, out);
}
PRIVML_TARGET_CLONES
void pack64(const u64* words, i64 groups, int width, u8* out) {
  pack_groups(words, groups, width, out);
}
PRIVML_TARGET_CLONES
void unpack32(const u8* bytes, i64 groups, int width, u32* out) {
  unpack_groups(bytes, groups, width, out);
}
PRIVML_TARGET_CLONES
void unpack64(const u8* bytes, i64 groups, int width, u64* out) {
  unpack_groups(bytes, groups, width, out);
}

}  // namespace

void lane_pack(const u32* words, i64 count, int width, u8* out) {
  const i64 groups = count / kGroup;
  pack32(words, groups, width, out);
  pack_tail(words + groups * kGroup, count % kGroup, width, out + groups * 32 * width);
}

void lane_pack(const u64* words, i64 count, int width, u8* out) {
  const i64 groups = count / kGroup;
  pack64(words, groups, width, out);
  pack_tail(words + groups * kGroup, count % kGroup, width, out + groups * 32 * width);
}

void lane_unpack(const u8* bytes, i64 count, int width, u32* out) {
  const i64 groups = count / kGroup;
  unpack32(bytes, groups, width, out);
  unpack_tail(bytes + groups * 32 * width, count % kGroup, width, out + groups * kGroup);
}

void lane_unpack(const u8* bytes, i64 count, int width, u64* out) {
  const i64 groups = count / kGroup;
  unpack64(bytes, groups, width, out);
  unpack_tail(bytes + groups * 32 * width, count % kGroup, width, out + groups * kGroup);
}

}  // namespace privml::twopc
