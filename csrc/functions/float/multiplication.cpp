// SPDX-License-Identifier: Apache-2.0
#include "functions/float/multiplication.h"

#include <algorithm>

#include "twopc/lookup/two_way_transfer.h"
#include "twopc/session/flight.h"

namespace privml::floating {
namespace {

using PairEntry = u64 (*)(int digit0, int digit1);

// Entries of one party's digit against all digits of the other, packed: word k of row d holds those
// from k * 64 / width on. A row is picked by a scan of all, since digits are secret.
struct PackedRows {
  i64 size, words;
  std::vector<u64> rows;

  PackedRows(int m, int width, bool first, PairEntry entry)
      : size(i64{1} << m), words(ceil_div(size * width, 64)), rows(size * words) {
    for (int mine = 0; mine < size; ++mine) {
      for (int theirs = 0; theirs < size; ++theirs) {
        const u64 value = first ? entry(mine, theirs) : entry(theirs, mine);
        rows[mine * words + theirs * width / 64] |= value << (theirs * width % 64);
      }
    }
  }
  void pick(int digit, u64* row) const {
    std::fill_n(row, words, u64{0});
    for (i64 d = 0; d < size; ++d) {
      const u64 mask = u64{0} - static_cast<u64>(d == digit);
      for (i64 k = 0; k < words; ++k) row[k] |= rows[d * words + k] & mask;
    }
  }
};

void run_pair_table(ot::Party& party, std::span<const u8> digits, int m, int width, PairEntry entry,
                    std::span<u64> out) {
  const i64 size = i64{1} << m;
  const twopc::Halves part = twopc::halves(party.rank, std::ssize(digits));
  const PackedRows packed(m, width, party.rank == 0, entry);
  std::vector<u64> row(packed.words);
  const auto mask = out.subspan(part.send_begin, part.send_count);
  party.prg.fill_ring(mask, width);
  AlignedVector<u64> messages(part.send_count << m);
  for (i64 i = 0; i < part.send_count; ++i) {
    packed.pick(digits[part.send_begin + i], row.data());
    for (i64 j = 0; j < size; ++j) {
      const u64 value = row[j * width / 64] >> (j * width % 64) & low_mask(width);
      messages[(i << m) + j] = value ^ mask[i];
    }
  }
  twopc::two_way_transfer(party, messages, digits.subspan(part.receive_begin, part.receive_count),
                          m, width, out.subspan(part.receive_begin, part.receive_count));
}

// XOR shares of entry(party 0's digit, party 1's digit) of `width` bits, 64 a multiple of width,
// for digits of m bits that each party holds in the clear. Cost: two_way_transfer.h.
functions::RingShares pair_table(functions::Evaluator& evaluator,
                                 const functions::BitShares& digits, int m, int width,
                                 PairEntry entry) {
  functions::RingShares out = evaluator.ring(digits.count);
  const i64 first = twopc::first_half(digits.count);
  evaluator.call(
      [&](ot::Party& party) { run_pair_table(party, digits, m, width, entry, out.values); },
      [&](ot::CostMeter& meter) {
        twopc::cost_two_way_transfer(meter, {first, digits.count - first}, m, width);
      });
  return out;
}

constexpr int kMostMantissa = 31;

// x' = product + 2^(q-1), x~ its complement. A digit: three bits of a share of x~ from place q - 1
// on, and shares of the carry into them, of "all ones below", and of the top bit of x~ (1 if
// the product is the shorter one). The bit that the result's shares lack: the carry out of the cut
// bits, or 1 for a tie that would round to odd. Party 0 cuts the longer product after taking
// another 2^(q-1) off x~.
u64 rounding_entry(int digit0, int digit1) {
  const int r0 = digit0 & 7, r1 = digit1 & 7, both = digit0 ^ digit1;
  const int carry = (both >> 3) & 1, exact = (both >> 4) & 1, shorter = (both >> 5) & 1;
  const int y = 7 - ((r0 + r1 + carry) & 7);
  if (shorter) {
    const int carried = ((r0 & 1) + (r1 & 1) + carry) >> 1;
    return static_cast<u64>(carried ^ (exact & ((y & 3) == 2 ? 1 : 0)));
  }
  const int carried = (((r0 - 1) & 3) + (r1 & 3) + carry) >> 2;
  return static_cast<u64>(carried ^ (exact & (y == 3 ? 1 : 0)));
}

FloatShares rounded_product(functions::Evaluator& evaluator, const FloatShares& a,
                            const FloatShares& b, const functions::RingShares& product,
                            FloatFormat f) {
  const int q = f.mantissa, bits = 2 * q + 2;
  const i64 n = evaluator.n;
  const functions::RingShares c = complement(evaluator, product, u64{1} << (q - 1), bits);
  const functions::Carries carries = evaluator.carries(c, bits - 1, q - 1, true);
  const functions::BitShares longer = evaluator.negated(
      evaluator.map_bits(n, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; }));
  functions::BitShares digits = evaluator.bits(n);
  evaluator.local(n, [&](i64 i) {
    const u64 shorter = longer[i] ^ evaluator.constant(1);
    digits[i] = static_cast<u8>(((c[i] >> (q - 1)) & 7) | u64{carries.low[i]} << 3 |
                                u64{carries.low_ones[i]} << 4 | shorter << 5);
  });
  const functions::RingShares entry = pair_table(evaluator, digits, 6, 1, rounding_entry);
  const functions::BitShares bit = evaluator.map_bits(n, [&](i64 i) { return entry[i]; });
  const u64 taken = evaluator.constant(u64{1} << (q - 1));
  const auto cut_short = [&](i64 i) { return c[i] >> q; };
  const functions::RingShares difference = evaluator.map(n, q + 1, [&](i64 i) {
    return (((c[i] - taken) & low_mask(bits)) >> (q + 1)) - cut_short(i);
  });
  const functions::Selected chosen = evaluator.select({{longer, difference, 1, q + 1}},
                                                      {{bit, q + 1}, {longer, f.exponent_bits()}});
  const u64 minus_one = evaluator.constant(~u64{0});
  FloatShares out{evaluator.or_bits(a.zero, b.zero), evaluator.bits(n), evaluator.ring(n),
                  evaluator.ring(n)};
  out.sign = evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; });
  out.exponent = evaluator.map(n, f.exponent_bits(), [&](i64 i) {
    return a.exponent[i] + b.exponent[i] + chosen.conversions[1][i];
  });
  out.mantissa = evaluator.map(n, q + 1, [&](i64 i) {
    return minus_one - cut_short(i) - chosen.selections[0][i] - chosen.conversions[0][i];
  });
  return out;
}

}  // namespace

// The other parts of a zero product are meaningless; the check replaces them.
FloatShares multiply_floats(functions::Evaluator& evaluator, const FloatShares& a,
                            const FloatShares& b, FloatFormat f) {
  twopc::FactorFormat factor{f.mantissa_bits(), false};
  factor.negative = true;
  const functions::RingShares product =
      evaluator.multiply(a.mantissa, factor, b.mantissa, factor, 2 * f.mantissa_bits());
  return check_float(evaluator, rounded_product(evaluator, a, b, product, f), f);
}

FloatBinary float_multiply(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(multiply_floats, f)};
}

}  // namespace privml::floating
