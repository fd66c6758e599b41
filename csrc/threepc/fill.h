// SPDX-License-Identifier: Apache-2.0
// Arrays of pseudo-random words, bits and small numbers. Sixteen blocks with consecutive counters
// (a super-block, 1024 bytes) are written word by word: word k of all sixteen, then word k + 1; so
// that neighbouring threads or vector lanes write neighbouring elements.
//   words: bits <= 32 take one 32-bit word each (low bits); wider ones take words 2t and 2t + 1 of
//          a block, low word first. With a minuend the result is minuend - word: what the dealer
//          sends when the other party's share is the word.
//   bits:  one keystream bit each, lowest first.
//   field: one byte each, see sample.h.
// Device header.
#pragma once

#include "threepc/jobs.h"
#include "threepc/rows.h"
#include "threepc/sample.h"

namespace privml::threepc {
namespace {

// Elements of one super-block.
constexpr i64 kFillBits = kQuads * kBlockWords * 32;
constexpr i64 kFillNumbers = kQuads * kBlockWords * 4;
PRIVML_DEVICE i64 fill_words_per(int bits) { return kQuads * kBlockWords / (bits <= 32 ? 1 : 2); }

PRIVML_DEVICE u64 ring_mask(int bits) { return bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1; }

// Elements first, first + 1, ... of a job, one per quad: `low`, and `high` above it if they are
// wide. Whole rows have no test per element, and read nothing of the job that they could have
// overwritten.
template <class W, bool wide>
PRIVML_DEVICE void put_words(const FillJob& job, i64 first, const W& low, const W& high) {
  const u64 ring = ring_mask(job.bits);
  const i64 left = job.count - first;
  if (left <= 0) return;
  u32 lows[kQuadsOf<W>], highs[kQuadsOf<W>];
  store_quads(lows, low);
  if (wide) store_quads(highs, high);
  u64 words[kQuadsOf<W>];
  for (int q = 0; q < kQuadsOf<W>; ++q)
    words[q] = wide ? lows[q] | static_cast<u64>(highs[q]) << 32 : lows[q];
  const i64* minuend = job.minuend ? job.minuend + first : nullptr;
  i64* out = job.words + first;
  if (left >= kQuadsOf<W>) {
    if (minuend)
      for (int q = 0; q < kQuadsOf<W>; ++q) words[q] = static_cast<u64>(minuend[q]) - words[q];
    for (int q = 0; q < kQuadsOf<W>; ++q) out[q] = static_cast<i64>(words[q] & ring);
    return;
  }
  for (int q = 0; q < left; ++q) {
    const u64 word = minuend ? static_cast<u64>(minuend[q]) - words[q] : words[q];
    out[q] = static_cast<i64>(word & ring);
  }
}

template <class W>
PRIVML_DEVICE void fill_words_part(const FillJob& job, i64 super, int quad) {
  W x[kBlockWords];
  chacha20(job.key, job.counter + super * kQuads + quad, 0, x);
  const i64 first = super * fill_words_per(job.bits) + quad;
  if (job.bits <= 32) {
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
      put_words<W, false>(job, first + k * kQuads, x[k], x[k]);
    }
  } else {
    PRIVML_UNROLL for (int k = 0; k < kBlockWords; k += 2) {
      put_words<W, true>(job, first + k / 2 * kQuads, x[k], x[k + 1]);
    }
  }
}

template <class W>
PRIVML_DEVICE void fill_bits_part(const FillJob& job, i64 super, int quad) {
  W x[kBlockWords];
  chacha20(job.key, job.counter + super * kQuads + quad, 0, x);
  PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
    u32 words[kQuadsOf<W>];
    store_quads(words, x[k]);
    for (int q = 0; q < kQuadsOf<W>; ++q) {
      const i64 first = ((super * kBlockWords + k) * kQuads + quad + q) * 32;
      for (int bit = 0; bit < 32; ++bit) {
        if (first + bit < job.count) job.bytes[first + bit] = (words[q] >> bit) & 1;
      }
    }
  }
}

template <class W>
PRIVML_DEVICE void fill_field_part(const FillJob& job, i64 super, int quad) {
  W x[kBlockWords];
  uniform_rows(job.key, job.counter + super * kQuads + quad, bound_below(job.modulus), x);
  PRIVML_UNROLL for (int k = 0; k < kBlockWords; ++k) {
    const i64 first = super * kFillNumbers + k * kGroup + 4 * quad;
    const i64 left = job.count - first, whole = sizeof(W);
    store_row(job.bytes, Place{first, 0, static_cast<int>(left < whole ? left : whole)}, 0, x[k]);
  }
}

}  // namespace
}  // namespace privml::threepc
