// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/nonzero_bit.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "twopc/compare/prefix.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/two_way_transfer.h"
#include "twopc/select/boolean.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

constexpr int kDigit = 4;
constexpr int kChoiceBits = kDigit + 1;  // a digit's share and the share of its carry

i64 chunk_limit(int ell) { return std::max<i64>(kChunk / digit_count(ell, kDigit), 1); }

// Four bits per digit value: the one-hot place of its most significant one, zero for zero.
constexpr u64 one_hot_table() {
  u64 table = 0;
  for (u64 value = 1; value < 16; ++value)
    table |= (u64{1} << (std::bit_width(value) - 1)) << (4 * value);
  return table;
}

// The entries of digits of `bits` bits, periodic.
constexpr u64 one_hot_table(int bits) {
  u64 table = one_hot_table() & low_mask(4 << bits);
  for (int size = 4 << bits; size < 64; size *= 2) table |= table << size;
  return table;
}

// A digit's messages: j = peer's share + 16 * peer's carry share. Rotating the table by this
// party's share and the carry brings all entries of one carry into place at once.
void digit_messages(std::span<const u8> share, std::span<const u8> carry, std::span<const u64> mask,
                    std::span<const u64> tables, std::span<u64> messages) {
  constexpr u64 every_entry = 0x1111111111111111;
  for (size_t i = 0; i < share.size(); ++i) {
    for (int peer_carry : {0, 1}) {
      const int value = share[i] + (carry[i] ^ peer_carry);
      const u64 row = std::rotr(tables[i], 4 * value) ^ mask[i] * every_entry;
      u64* const out = messages.data() + (i << kChoiceBits) + (peer_carry << kDigit);
      for (int j = 0; j < 1 << kDigit; ++j) out[j] = (row >> (4 * j)) & 15;
    }
  }
}

// XOR shares of every digit's one-hot vector; party 0 sends for the first half, party 1 for the
// rest.
void digit_one_hots(ot::Party& party, std::span<const u8> share, std::span<const u8> carry,
                    std::span<const u64> tables, std::span<u8> one_hot) {
  const i64 total = std::ssize(share), half = (total + 1) / 2;
  const i64 send_first = party.rank == 0 ? 0 : half;
  const i64 send_count = party.rank == 0 ? half : total - half;
  const i64 pick_first = half - send_first, pick_count = total - send_count;
  const auto sent = [&](auto v) { return v.subspan(send_first, send_count); };

  std::vector<u8> choices(pick_count);
  for (i64 i = 0; i < pick_count; ++i)
    choices[i] = static_cast<u8>(share[pick_first + i] | carry[pick_first + i] << kDigit);
  AlignedVector<u64> mask(send_count), messages(send_count << kChoiceBits), got(pick_count);
  party.prg.fill_ring(mask, kDigit);
  digit_messages(sent(share), sent(carry), mask, sent(tables), messages);
  two_way_transfer(party, messages, choices, kChoiceBits, kDigit, got);
  std::copy(mask.begin(), mask.end(), one_hot.begin() + send_first);
  std::copy(got.begin(), got.end(), one_hot.begin() + pick_first);
}

void cost_digit_one_hots(ot::CostMeter& meter, i64 total) {
  cost_two_way_transfer(meter, {(total + 1) / 2, total / 2}, kChoiceBits, kDigit);
}

// keep[j * n + k]: all digits above digit j are zero, for all digits but the top one.
void all_higher_zero(ot::Party& party, std::span<const u8> one_hot, i64 count, i64 n,
                     std::span<u8> keep) {
  const i64 positions = count - 1;  // position p is digit count - 1 - p
  std::vector<u8> zero(positions * n);
  for (i64 p = 0; p < positions; ++p) {
    for (i64 k = 0; k < n; ++k) {
      const u8 bits = one_hot[(count - 1 - p) * n + k];
      const u8 nonzero = (bits ^ bits >> 1 ^ bits >> 2 ^ bits >> 3) & 1;
      zero[p * n + k] = nonzero ^ (party.rank == 0 ? 1 : 0);
    }
  }
  for (const PrefixLevel& level : prefix_levels(positions)) {
    const size_t size = level.nodes.size() * n;
    std::vector<u8> a(size), b(size), c(size);
    for (size_t i = 0; i < level.nodes.size(); ++i) {
      std::copy_n(zero.begin() + level.nodes[i].high * n, n, a.begin() + i * n);
      std::copy_n(zero.begin() + level.nodes[i].low * n, n, b.begin() + i * n);
    }
    and_bits(party, a, b, c);
    for (size_t i = 0; i < level.nodes.size(); ++i)
      std::copy_n(c.begin() + i * n, n, zero.begin() + level.nodes[i].high * n);
  }
  for (i64 j = 0; j < positions; ++j)
    std::copy_n(zero.begin() + (positions - 1 - j) * n, n, keep.begin() + j * n);
}

// Place 0: the complement of all others, or its own bit.
enum class Zero { is_place_0, is_none };

void one_hot_chunk(ot::Party& party, std::span<const u64> x, int ell, Zero zero,
                   std::span<u8> out) {
  const i64 n = std::ssize(x), count = digit_count(ell, kDigit);
  std::vector<u8> share(count * n), carry(count * n), one_hot(count * n);
  std::vector<u64> tables(count * n);
  digit_carries(party, x, ell, kDigit, std::span(carry).subspan(n));
  for (i64 j = 0; j < count; ++j) {
    const int bits = std::min<int>(kDigit, ell - static_cast<int>(j) * kDigit);
    for (i64 k = 0; k < n; ++k) {
      share[j * n + k] = static_cast<u8>((x[k] >> (j * kDigit)) & low_mask(bits));
      tables[j * n + k] = one_hot_table(bits);
    }
  }
  digit_one_hots(party, share, carry, tables, one_hot);
  if (count > 1) {
    std::vector<u8> keep((count - 1) * n), kept((count - 1) * n);
    all_higher_zero(party, one_hot, count, n, keep);
    and_strings(party, keep, std::span(one_hot).first(keep.size()), kDigit, kept);
    std::copy(kept.begin(), kept.end(), one_hot.begin());
  }
  for (i64 k = 0; k < n; ++k) {
    u8 others = party.rank == 0 ? 1 : 0;
    for (i64 place = 1; place < ell; ++place) {
      const u8 bit = (one_hot[place / kDigit * n + k] >> (place % kDigit)) & 1;
      out[k * ell + place] = bit;
      others ^= bit;
    }
    out[k * ell] = zero == Zero::is_place_0 ? others : one_hot[k] & 1;
  }
}

void cost_one_hot_chunk(ot::CostMeter& meter, i64 n, int ell) {
  const i64 count = digit_count(ell, kDigit);
  cost_digit_carries(meter, n, ell, kDigit);
  cost_digit_one_hots(meter, count * n);
  if (count == 1) return;
  for (const PrefixLevel& level : prefix_levels(count - 1))
    cost_and_bits(meter, std::ssize(level.nodes) * n);
  cost_and_strings(meter, (count - 1) * n, kDigit);
}

void run(ot::Party& party, std::span<const u64> x, int ell, Zero zero, std::span<u8> one_hot) {
  expect(ell >= 1 && ell <= 64, "most_significant_nonzero_bit: ell must lie in 1..64");
  expect(std::ssize(one_hot) == std::ssize(x) * ell,
         "most_significant_nonzero_bit: ell output bits per element");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& m, i64 n) { cost_one_hot_chunk(m, n, ell); },
      [&](i64 begin, i64 n) {
        one_hot_chunk(party, x.subspan(begin, n), ell, zero, one_hot.subspan(begin * ell, n * ell));
      },
      chunk_limit(ell));
}

}  // namespace

void most_significant_nonzero_bit(ot::Party& party, std::span<const u64> x, int ell,
                                  std::span<u8> one_hot) {
  run(party, x, ell, Zero::is_place_0, one_hot);
}

void most_significant_nonzero_bit_or_none(ot::Party& party, std::span<const u64> x, int ell,
                                          std::span<u8> one_hot) {
  run(party, x, ell, Zero::is_none, one_hot);
}

void cost_most_significant_nonzero_bit(ot::CostMeter& meter, i64 count, int ell) {
  cost_in_chunks(
      meter, count, [&](ot::CostMeter& m, i64 n) { cost_one_hot_chunk(m, n, ell); },
      chunk_limit(ell));
}

void one_hot_select(std::span<const u8> one_hot, std::span<const u64> table, std::span<u64> out) {
  const size_t size = table.size();
  expect(one_hot.size() == out.size() * size, "one_hot_select: table.size() bits per output word");
  for (size_t k = 0; k < out.size(); ++k) {
    u64 word = 0;
    for (size_t j = 0; j < size; ++j) word ^= table[j] & (u64{0} - one_hot[k * size + j]);
    out[k] = word;
  }
}

}  // namespace privml::twopc
