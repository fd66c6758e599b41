// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/pack.h"
#include "base/parallel.h"
#include "threepc/kernels.h"
#include "threepc/ring.h"

namespace privml::threepc {
namespace {

constexpr i64 kLeast = 4096;  // elements per thread at least

PRIVML_TARGET_CLONES
void selection_loop(int party, const u8* m_b, const u64* m_a, const u64* r_a, const u64* r_bit,
                    const u64* r_product, u64 ring, i64 begin, i64 end, u64* __restrict out) {
  for (i64 i = begin; i < end; ++i)
    out[i] = selection_share(party, m_b[i] & 1, m_a[i], r_a[i], r_bit[i], r_product[i]) & ring;
}

PRIVML_TARGET_CLONES
void bit_loop(int party, const u8* m_b, const u64* r_bit, u64 ring, i64 begin, i64 end,
              u64* __restrict out) {
  for (i64 i = begin; i < end; ++i) out[i] = bit_share(party, m_b[i] & 1, r_bit[i]) & ring;
}

PRIVML_TARGET_CLONES
void lookup_loop(const u64* turned, i64 kinds, int size, const u64* m, const u64* dealt, i64 count,
                 u64 ring, i64 begin, i64 end, u64* __restrict out) {
  for (i64 i = begin; i < end; ++i)
    for (i64 kind = 0; kind < kinds; ++kind)
      out[kind * count + i] =
          lookup_share(turned + kind * 2 * size, size, m[i], dealt + i * size) & ring;
}

// Bit j of word i becomes bit i of word j (Warren, Hacker's Delight, 7-3).
[[gnu::always_inline]] inline void transpose(u64 (&words)[64]) {
  u64 mask = 0x00000000ffffffff;
  for (int by = 32; by > 0; by /= 2, mask ^= mask << by) {
    for (int begin = 0; begin < 64; begin += 2 * by) {
      for (int i = begin; i < begin + by; ++i) {
        const u64 swap = ((words[i] >> by) ^ words[i + by]) & mask;
        words[i] ^= swap << by;
        words[i + by] ^= swap;
      }
    }
  }
}

// Groups [begin, end) of 64 elements of all rows.
PRIVML_TARGET_CLONES
void planes_loop(const u64* words, i64 rows, i64 count, int bits, i64 begin, i64 end,
                 u8* __restrict out) {
  const i64 size = ceil_div(count, 8), groups = ceil_div(count, 64);
  for (i64 group = begin; group < end; ++group) {
    const i64 row = group / groups, first = group % groups * 64;
    u64 square[64] = {};
    std::memcpy(square, words + row * count + first,
                std::min<i64>(64, count - first) * sizeof(u64));
    transpose(square);
    u8* to = out + row * size + first / 8;
    const i64 width = std::min<i64>(8, size - first / 8);
    for (int bit = 0; bit < bits; ++bit) std::memcpy(to + bit * rows * size, &square[bit], width);
  }
}

void check(int party, int bits, int threads) {
  expect(party == 0 || party == 1, "party must be 0 or 1");
  expect(bits >= 1 && bits <= 64, "bits must be 1 to 64");
  expect(threads >= 1, "threads must be at least 1");
}

// work(begin, end) on parts of `count` elements, each of `each` steps.
template <class Work>
void divide(i64 count, i64 each, int threads, const Work& work) {
  in_parallel(count, 1, static_cast<int>(std::min<i64>(threads, count / ceil_div(kLeast, each))),
              [&](i64 first, i64 number) { work(first, first + number); });
}

// What a step after another finds in the processor's cache: whole super-blocks of the key's words
// and whole bytes of any width.
constexpr i64 kChunk = 1024;

struct Chunk {
  i64 first, count;
  i64 bytes_before;  // packed bytes of what goes before it
};

template <class Work>
void in_chunks(i64 count, int bits, int threads, const Work& work) {
  check(0, bits, threads);
  divide(ceil_div(count, kChunk), kChunk, threads, [&](i64 begin, i64 end) {
    for (i64 first = begin * kChunk; first < std::min(count, end * kChunk); first += kChunk)
      work(Chunk{first, std::min(kChunk, count - first), packed_bytes(first, bits)});
  });
}

// The key's words that belong to a chunk; if there are values, they are taken away from those.
FillJob fill_of(KeyPlace place, const Chunk& chunk, int bits, const u64* values, u64* out) {
  return {place.key,
          place.counter + static_cast<u64>(words_blocks(chunk.first, bits)),
          chunk.count,
          bits,
          0,
          reinterpret_cast<const i64*>(values),
          reinterpret_cast<i64*>(out),
          nullptr};
}

PRIVML_TARGET_CLONES
void add(const u64* a, const u64* b, i64 count, u64* sums) {
  for (i64 i = 0; i < count; ++i) sums[i] = a[i] + b[i];
}

}  // namespace

void selection_shares(int party, const u8* m_b, const u64* m_a, const u64* r_a, const u64* r_bit,
                      const u64* r_product, i64 count, int bits, u64* out, int threads) {
  check(party, bits, threads);
  divide(count, 1, threads, [&](i64 begin, i64 end) {
    selection_loop(party, m_b, m_a, r_a, r_bit, r_product, low_mask(bits), begin, end, out);
  });
}

void bit_shares(int party, const u8* m_b, const u64* r_bit, i64 count, int bits, u64* out,
                int threads) {
  check(party, bits, threads);
  divide(count, 1, threads,
         [&](i64 begin, i64 end) { bit_loop(party, m_b, r_bit, low_mask(bits), begin, end, out); });
}

void lookup_shares(const u64* turned, i64 kinds, int size, const u64* m, const u64* dealt,
                   i64 count, int bits, u64* out, int threads) {
  check(0, bits, threads);
  expect(size >= 1 && (size & (size - 1)) == 0, "a table has 2^k entries");
  divide(count, size, threads, [&](i64 begin, i64 end) {
    lookup_loop(turned, kinds, size, m, dealt, count, low_mask(bits), begin, end, out);
  });
}

void bit_planes(const u64* words, i64 rows, i64 count, int bits, u8* out, int threads) {
  check(0, bits, threads);
  expect(rows >= 0 && count >= 0, "rows and count must not be negative");
  divide(rows * ceil_div(count, 64), 64, threads,
         [&](i64 begin, i64 end) { planes_loop(words, rows, count, bits, begin, end, out); });
}

void mask_words(KeyPlace place, const u64* part, i64 count, int bits, u64* mask, u64* masked,
                u8* wire, int threads) {
  in_chunks(count, bits, threads, [&](const Chunk& chunk) {
    u64 *own = mask + chunk.first, *sums = masked + chunk.first;
    fill_words(fill_of(place, chunk, bits, nullptr, own));
    add(part + chunk.first, own, chunk.count, sums);
    pack(sums, chunk.count, bits, wire + chunk.bytes_before);
  });
}

void deal_packed(KeyPlace place, const u64* values, i64 count, int bits, u8* wire, int threads) {
  in_chunks(count, bits, threads, [&](const Chunk& chunk) {
    u64 part[kChunk];
    fill_words(fill_of(place, chunk, bits, values + chunk.first, part));
    pack(part, chunk.count, bits, wire + chunk.bytes_before);
  });
}

void add_packed(const u64* words, const u8* wire, i64 count, int bits, u64* sums) {
  in_chunks(count, bits, 1, [&](const Chunk& chunk) {
    unpack(wire + chunk.bytes_before, chunk.count, bits, sums + chunk.first);
    add(words + chunk.first, sums + chunk.first, chunk.count, sums + chunk.first);
  });
}

}  // namespace privml::threepc
