// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncate_by_sign.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/together.h"
#include "twopc/select/bit_products.h"
#include "twopc/session/chunk.h"
#include "twopc/width/quotient.h"

namespace privml::twopc {
namespace {

// What both functions ask for: x where its own sign (y_bits = 0) is not negative, or where that of
// another number of y_bits bits is.
struct Shape {
  QuotientShape quotient;
  int y_bits = 0;
  bool own_sign() const { return y_bits == 0; }
  int sign_bits() const { return own_sign() ? quotient.bits : y_bits; }
};

// The carry out of the bits that are dropped, and that into the sign, if it has lower bits. Of one
// number the first is the split of the second, unless they are the same.
std::vector<CountedShape> comparisons(const Shape& shape, i64 n) {
  if (shape.own_sign()) return {{sign_and_carry(shape.quotient.bits, shape.quotient.shift), n}};
  std::vector<CountedShape> all{{{shape.quotient.shift}, n}};
  if (shape.y_bits > 1) all.push_back({{shape.y_bits - 1}, n});
  return all;
}

// XOR shares of whether the quotient is taken.
std::vector<u8> taken(int rank, const Shape& shape, std::span<const u64> signs,
                      const std::vector<Comparison>& carries) {
  const u8 flip = shape.own_sign() && rank == 0 ? 1 : 0;
  std::vector<u8> bits(signs.size());
  for (std::size_t i = 0; i < bits.size(); ++i)
    bits[i] = static_cast<u8>(signs[i] >> (shape.sign_bits() - 1) & 1) ^ flip;
  if (shape.sign_bits() == 1) return bits;
  const std::span<const u8> carry = greater_of(carries.back());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] ^= carry[i];
  return bits;
}

// Exchanges after the leaves: the levels, that of the sign, and that of the selection, which are
// one if the carries are opened before.
int exchanges_after(int levels, int known) { return known < levels ? levels + 1 : levels + 2; }

void run_chunk(ot::Party& party, const Shape& shape, std::span<const u64> x,
               std::span<const u64> signs, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const std::vector<CountedShape> asked = comparisons(shape, n);
  Quotients quotients;
  quotients.shape = shape.quotient;
  RandomSelection chosen;
  std::vector<Comparison> carries(asked.size());
  write_quotients(party, x, quotients);
  draw_random_selection(party, n, chosen);
  for (std::size_t k = 0; k < asked.size(); ++k)
    prepare_comparison(party, asked[k].shape, n, carries[k]);
  for (std::size_t k = 0; k < asked.size(); ++k)
    begin_comparison(party, asked[k].shape, k == 0 ? x : signs, carry_flip(party.rank), carries[k]);
  read_quotients(party, quotients);
  exchange_leaves(party, carries);
  const int levels = levels_of(carries), known = levels_to_low(asked[0].shape, carries[0].plan);
  const int exchanges = exchanges_after(levels, known);
  std::vector<u8> difference(n);
  AlignedVector<u64> high;
  const auto write = [&](int k) {
    if (k == known) write_carries(party, low_answer(asked[0].shape, carries[0]), quotients);
    if (k == levels)
      write_difference(party, taken(party.rank, shape, signs, carries), chosen.bits, difference);
    if (k < exchanges - 1) return;
    high = quotients_of(x, quotients);
    write_drawn_selection(party, high, shape.quotient.ring, chosen);
  };
  const auto read = [&](int k) {
    if (k == known) read_carries(party, low_answer(asked[0].shape, carries[0]), quotients);
    if (k == levels) read_bits_xor(party, difference);
    if (k == exchanges - 1) read_random_selection(party, chosen);
  };
  exchange_levels(party, carries, exchanges, write, read);
  select_values(chosen, high, difference, out);
}

void cost_chunk(ot::CostMeter& meter, i64 n, const Shape& shape) {
  const std::vector<CountedShape> asked = comparisons(shape, n);
  cost_draw_quotients(meter, n, shape.quotient);
  cost_draw_random_selection(meter, n);
  const ComparisonPlan plan = plan_comparison(asked[0].shape, comparison_prices(meter, n));
  const int levels = levels_of(meter, asked), known = levels_to_low(asked[0].shape, plan);
  std::vector<Flight> more(exchanges_after(levels, known));
  const i64 opened = packed_bytes(n, 1);
  more[known] = more[known] + carries_flight(n, shape.quotient);
  more[levels] = more[levels] + Flight{opened, opened};
  more.back() = more.back() + random_selection_flight(n, 1, shape.quotient.ring);
  cost_together(meter, asked, quotients_flight(n, shape.quotient), std::move(more));
}

void run(ot::Party& party, const Shape& shape, std::span<const u64> x, std::span<const u64> signs,
         std::span<u64> out) {
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, shape); },
      [&](i64 begin, i64 n) {
        run_chunk(party, shape, x.subspan(begin, n), signs.subspan(begin, n),
                  out.subspan(begin, n));
      });
}

void cost(ot::CostMeter& meter, i64 n, const Shape& shape) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape); });
}

Shape rectified(int bits, int shift, int out_bits) {
  expect(shift >= 1 && shift < bits && bits <= 64,
         "truncate_rectified: needs 1 <= shift < bits <= 64");
  expect(out_bits >= 1 && out_bits <= 64, "truncate_rectified: out_bits must be in 1..64");
  return {{bits, shift, out_bits}};
}

Shape checked(const TruncateIfNegative& shape) {
  expect(shape.shift >= 1 && shape.shift < shape.bits && shape.bits <= 64,
         "truncate_if_negative: needs 1 <= shift < bits <= 64");
  expect(shape.wider >= 0 && shape.bits - shape.shift + shape.wider <= 64,
         "truncate_if_negative: the result's ring has at most 64 bits");
  expect(shape.y_bits >= 1 && shape.y_bits <= 64, "truncate_if_negative: y_bits must be in 1..64");
  return {{shape.bits, shape.shift, shape.bits - shape.shift + shape.wider}, shape.y_bits};
}

}  // namespace

void truncate_rectified(ot::Party& party, std::span<const u64> x, int bits, int shift, int out_bits,
                        std::span<u64> out) {
  const Shape shape = rectified(bits, shift, out_bits);
  expect(x.size() == out.size(), "truncate_rectified: out must be as long as x");
  run(party, shape, x, x, out);
}

void cost_truncate_rectified(ot::CostMeter& meter, i64 n, int bits, int shift, int out_bits) {
  cost(meter, n, rectified(bits, shift, out_bits));
}

void truncate_if_negative(ot::Party& party, const TruncateIfNegative& shape, std::span<const u64> x,
                          std::span<const u64> y, std::span<u64> out) {
  const Shape all = checked(shape);
  expect(x.size() == y.size() && x.size() == out.size(),
         "truncate_if_negative: x, y and out must be as long");
  run(party, all, x, y, out);
}

void cost_truncate_if_negative(ot::CostMeter& meter, i64 n, const TruncateIfNegative& shape) {
  cost(meter, n, checked(shape));
}

}  // namespace privml::twopc
