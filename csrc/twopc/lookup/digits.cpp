// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/digits.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/prefix.h"
#include "twopc/compare/wrap.h"
#include "twopc/select/boolean.h"
#include "twopc/session/chunk.h"
#include "twopc/width/conversion.h"

namespace privml::twopc {
namespace {

void check(int ell, int digit_bits) {
  expect(ell >= 1 && ell <= 64 && digit_bits >= 1 && digit_bits <= 64,
         "digits: widths must lie in 1..64");
}

// w_high ^= e_high & w_low, e_high &= e_low. Nodes that reach digit 0, the first ones, need no e.
void run_level(ot::Party& party, const PrefixLevel& level, i64 n, std::span<u8> w,
               std::span<u8> e) {
  const i64 nodes = std::ssize(level.nodes);
  const int width = level.complete < nodes ? 2 : 1;
  std::vector<u8> a(nodes * n), b(nodes * n), c(nodes * n);
  for (i64 i = 0; i < nodes; ++i) {
    const auto [high, low] = level.nodes[i];
    for (i64 k = 0; k < n; ++k) {
      a[i * n + k] = e[high * n + k];
      b[i * n + k] =
          static_cast<u8>(w[low * n + k] | (i < level.complete ? 0 : e[low * n + k] << 1));
    }
  }
  and_strings(party, a, b, width, c);
  for (i64 i = 0; i < nodes; ++i) {
    const i64 high = level.nodes[i].high;
    for (i64 k = 0; k < n; ++k) {
      w[high * n + k] ^= c[i * n + k] & 1;
      e[high * n + k] = c[i * n + k] >> 1;
    }
  }
}

void carries_chunk(ot::Party& party, std::span<const u64> x, int ell, int digit_bits,
                   std::span<u8> w) {
  const i64 n = std::ssize(x), positions = digit_count(ell, digit_bits) - 1;
  std::vector<u64> words(positions * n);
  std::vector<u8> e(positions * n);
  for (i64 j = 0; j < positions; ++j)
    for (i64 k = 0; k < n; ++k)
      words[j * n + k] = (x[k] >> (j * digit_bits)) & low_mask(digit_bits);
  wrap_with_all_ones(party, words, digit_bits, w, e);
  for (const PrefixLevel& level : prefix_levels(positions)) run_level(party, level, n, w, e);
}

void cost_carries_chunk(ot::CostMeter& meter, i64 n, int ell, int digit_bits) {
  const i64 positions = digit_count(ell, digit_bits) - 1;
  cost_wrap_with_all_ones(meter, positions * n, digit_bits);
  for (const PrefixLevel& level : prefix_levels(positions)) {
    const i64 nodes = std::ssize(level.nodes);
    cost_and_strings(meter, nodes * n, level.complete < nodes ? 2 : 1);
  }
}

// Elements of a chunk, so that all digits of it together stay near kChunk.
i64 chunk_limit(int ell, int digit_bits) {
  return std::max<i64>(kChunk / digit_count(ell, digit_bits), 1);
}

int top_digit_bits(int ell, int digit_bits) { return (ell - 1) % digit_bits + 1; }

}  // namespace

void digit_carries(ot::Party& party, std::span<const u64> x, int ell, int digit_bits,
                   std::span<u8> carries) {
  check(ell, digit_bits);
  const i64 n = std::ssize(x), positions = digit_count(ell, digit_bits) - 1;
  expect(std::ssize(carries) == positions * n, "digit_carries: (digits - 1) * n carries");
  if (positions == 0) return;
  in_chunks(
      party, n, [&](ot::CostMeter& m, i64 count) { cost_carries_chunk(m, count, ell, digit_bits); },
      [&](i64 begin, i64 count) {
        std::vector<u8> w(positions * count);
        carries_chunk(party, x.subspan(begin, count), ell, digit_bits, w);
        for (i64 j = 0; j < positions; ++j)
          std::copy_n(w.begin() + j * count, count, carries.begin() + j * n + begin);
      },
      chunk_limit(ell, digit_bits));
}

void cost_digit_carries(ot::CostMeter& meter, i64 count, int ell, int digit_bits) {
  if (digit_count(ell, digit_bits) == 1) return;
  cost_in_chunks(
      meter, count, [&](ot::CostMeter& m, i64 n) { cost_carries_chunk(m, n, ell, digit_bits); },
      chunk_limit(ell, digit_bits));
}

void digits(ot::Party& party, std::span<const u64> x, int ell, int digit_bits, std::span<u64> out) {
  check(ell, digit_bits);
  const i64 n = std::ssize(x), count = digit_count(ell, digit_bits);
  const int top = top_digit_bits(ell, digit_bits);
  expect(std::ssize(out) == count * n, "digits: digits * n output words");
  std::vector<u8> carries((count - 1) * n);
  std::vector<u64> carry((count - 1) * n);
  digit_carries(party, x, ell, digit_bits, carries);
  const i64 full = std::max<i64>(count - 2, 0) * n;
  const auto convert = [&](i64 first, i64 size, int width) {
    if (size > 0)
      bits_to_ring(party, std::span(carries).subspan(first, size), width,
                   std::span(carry).subspan(first, size));
  };
  convert(0, full, digit_bits);
  convert(full, (count - 1) * n - full, top);
  for (i64 j = 0; j < count; ++j) {
    const u64 mask = low_mask(j + 1 < count ? digit_bits : top);
    for (i64 k = 0; k < n; ++k)
      out[j * n + k] = ((x[k] >> (j * digit_bits)) + (j > 0 ? carry[(j - 1) * n + k] : 0)) & mask;
  }
}

void cost_digits(ot::CostMeter& meter, i64 count, int ell, int digit_bits) {
  const i64 number = digit_count(ell, digit_bits);
  cost_digit_carries(meter, count, ell, digit_bits);
  const i64 full = std::max<i64>(number - 2, 0) * count;
  if (full > 0) cost_bits_to_ring(meter, full, digit_bits);
  if (number > 1) cost_bits_to_ring(meter, count, top_digit_bits(ell, digit_bits));
}

}  // namespace privml::twopc
