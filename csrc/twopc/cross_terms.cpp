// SPDX-License-Identifier: Apache-2.0
#include "twopc/cross_terms.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ot/derive.h"
#include "twopc/dense.h"

namespace privml {
namespace {

constexpr i64 kChunkCots = i64{1} << 20;
constexpr i64 kChunkElements = i64{1} << 16;
constexpr i64 kTurnBytes = i64{1} << 20;

void check(KnownFormat left, KnownFormat right, int ell) {
  expect(left.bits >= 1 && left.bits <= 64 && right.bits >= 1 && right.bits <= 64 && ell >= 1 && ell <= 64,
         "cross_term: widths must lie in 1..64");
}

// The elementwise product as one direction of transfers: `bits` of each choice operand.
struct Direction {
  int bits;
  bool is_signed;
  int ell;
};

Direction direction(KnownFormat choice, int ell) {
  return {std::min(choice.bits, ell), choice.is_signed && choice.bits <= ell, ell};
}

i64 chunk_elements(int bits) { return std::min(kChunkElements, kChunkCots / bits); }

// Adds sign * share * 2^bit, the sign of the top bit of a two's complement operand being negative.
void accumulate(std::span<u64> out, const std::vector<u64>& share, const Direction& d, int bit) {
  const u64 factor = (d.is_signed && bit == d.bits - 1) ? u64{0} - (u64{1} << bit) : u64{1} << bit;
  const u64 mask = low_mask(d.ell);
  for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] + share[i] * factor) & mask;
}

// Bit planes [first, result) of one turn; one party's stream goes out before the peer's is read.
int turn_end(int first, const Direction& d, i64 count, bool both) {
  if (!both) return d.bits;
  i64 bytes = 0;
  while (first < d.bits && bytes < kTurnBytes) bytes += packed_bytes(count, d.ell - first++);
  return first;
}

// One chunk. x: this party's choice operand, y: this party's correlations; either may be empty.
void run_chunk(Party& party, std::span<const u64> x, std::span<const u64> y, const Direction& d,
               std::span<u64> out) {
  const i64 n = std::ssize(out), cots = n * d.bits;
  reserve(party, y.empty() ? 0 : cots, x.empty() ? 0 : cots);
  std::vector<u8> choices(x.empty() ? 0 : cots);
  std::vector<Block> t(x.empty() ? 0 : cots), q(y.empty() ? 0 : cots);
  if (!x.empty()) {
    for (int bit = 0; bit < d.bits; ++bit)
      for (i64 k = 0; k < n; ++k) choices[bit * n + k] = static_cast<u8>((x[k] >> bit) & 1);
    choose_receive(party, choices, t.data());
  }
  if (!y.empty()) choose_send(party, q.data(), cots);
  std::vector<u64> share(n);
  std::fill(out.begin(), out.end(), 0);
  for (int first = 0; first < d.bits;) {
    const int last = turn_end(first, d, n, !x.empty() && !y.empty());
    for (int bit = first; bit < last && !y.empty(); ++bit) {
      additive_send(party, q.data() + bit * n, y, 1, d.ell - bit, share);
      accumulate(out, share, d, bit);
    }
    for (int bit = first; bit < last && !x.empty(); ++bit) {
      const std::span<const u8> plane{choices.data() + bit * n, static_cast<size_t>(n)};
      additive_receive(party, t.data() + bit * n, plane, 1, d.ell - bit, share);
      accumulate(out, share, d, bit);
    }
    first = last;
  }
}

void run(Party& party, std::span<const u64> x, std::span<const u64> y, const Direction& d,
         std::span<u64> out) {
  const i64 n = std::ssize(out), step = chunk_elements(d.bits);
  for (i64 first = 0; first < n; first += step) {
    const i64 count = std::min(step, n - first);
    run_chunk(party, x.empty() ? x : x.subspan(first, count), y.empty() ? y : y.subspan(first, count), d,
              out.subspan(first, count));
  }
}

void cost(CostMeter& meter, std::array<bool, 2> senders, i64 n, const Direction& d) {
  const i64 size = chunk_elements(d.bits);
  for (i64 first = 0; first < n; first += size) {
    const i64 count = std::min(size, n - first), cots = count * d.bits;
    meter.reserve(senders[0] ? cots : 0, senders[1] ? cots : 0);
    for (int sender : {0, 1})
      if (senders[sender]) meter.draw(sender, cots);
    meter.exchange(senders[1] ? packed_bytes(cots, 1) : 0, senders[0] ? packed_bytes(cots, 1) : 0);
    for (int bit = 0; bit < d.bits;) {
      const int last = turn_end(bit, d, count, senders[0] && senders[1]);
      i64 bytes = 0;
      for (; bit < last; ++bit) bytes += packed_bytes(count, d.ell - bit);
      meter.exchange(senders[0] ? bytes : 0, senders[1] ? bytes : 0);
    }
  }
}

// The side whose bits are the choices, of operands that meet elementwise.
bool choose_left(KnownFormat left, KnownFormat right, int ell, ChoiceSide side) {
  if (side != ChoiceSide::automatic) return side == ChoiceSide::left;
  return cross_term_bits(1, 1, left.bits, ell) <= cross_term_bits(1, 1, right.bits, ell);
}

}  // namespace

i64 cross_term_bits(i64 choices, i64 elements, int choice_bits, int ell) {
  const i64 bits = std::min(choice_bits, ell);
  return choices * bits * kCorrelationBits + elements * (bits * ell - bits * (bits - 1) / 2);
}

ChoiceSide choose_side(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell) {
  const i64 elements = shape.rows * shape.inner * shape.columns;
  const i64 by_left = cross_term_bits(shape.rows * shape.inner, elements, left.bits, ell);
  const i64 by_right = cross_term_bits(shape.inner * shape.columns, elements, right.bits, ell);
  return by_left <= by_right ? ChoiceSide::left : ChoiceSide::right;
}

void cross_term(Party& party, int left_holder, std::span<const u64> mine, KnownFormat left,
                KnownFormat right, int ell, ChoiceSide side, std::span<u64> out) {
  check(left, right, ell);
  expect(mine.size() == out.size(), "cross_term: operand and output lengths differ");
  const bool by_left = choose_left(left, right, ell, side);
  const bool is_left = party.rank == left_holder;
  const Direction d = direction(by_left ? left : right, ell);
  if (is_left == by_left) {
    run(party, mine, {}, d, out);
  } else {
    run(party, {}, ring_elements(mine, is_left ? left : right, ell), d, out);
  }
}

void cost_cross_term(CostMeter& meter, int left_holder, i64 count, KnownFormat left, KnownFormat right,
                     int ell, ChoiceSide side) {
  const bool by_left = choose_left(left, right, ell, side);
  const int sender = by_left ? 1 - left_holder : left_holder;
  cost(meter, {sender == 0, sender == 1}, count, direction(by_left ? left : right, ell));
}

void cross_terms(Party& party, std::span<const u64> x, std::span<const u64> y, KnownFormat left,
                 KnownFormat right, int ell, std::span<u64> out) {
  check(left, right, ell);
  expect(x.size() == out.size() && y.size() == out.size(), "cross_terms: lengths differ");
  if (choose_left(left, right, ell, ChoiceSide::automatic)) {
    run(party, x, ring_elements(y, right, ell), direction(left, ell), out);
  } else {
    run(party, y, ring_elements(x, left, ell), direction(right, ell), out);
  }
}

void cost_cross_terms(CostMeter& meter, i64 count, KnownFormat left, KnownFormat right, int ell) {
  const bool by_left = choose_left(left, right, ell, ChoiceSide::automatic);
  cost(meter, {true, true}, count, direction(by_left ? left : right, ell));
}

}  // namespace privml
