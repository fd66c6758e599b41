// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/square.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/wrap.h"
#include "twopc/product/cross_terms.h"
#include "twopc/product/private_product.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

// `room`: bits in which a carry's product counts; none if that is not above zero. `by_bit`: the
// carry follows from a known most significant bit, which is 0 with the offset.
struct Plan {
  int bits, ell, room;
  u64 offset;
  bool by_bit;
};

Plan plan(FactorFormat f, int ell) {
  expect(f.bits >= 2 && f.bits <= ell && ell <= 64 && ell <= 2 * f.bits - (f.bounded ? 1 : 0),
         "square: needs 2 <= m <= ell <= 2 m, less where bounded, and ell <= 64");
  expect(!f.negative, "square: a most significant bit may be known as 0 alone");
  expect(!f.bounded || (f.is_signed && !f.nonnegative),
         "square: a bounded factor is signed, and nothing else is known of it");
  const bool without = f.nonnegative || !f.is_signed;
  const u64 offset = without ? 0 : u64{1} << (f.bits - (f.bounded ? 2 : 1));
  return {f.bits, ell, ell - f.bits - 1, offset, f.bounded || f.nonnegative};
}

void square_chunk(ot::Party& party, const Plan& p, std::span<const u64> x_in, std::span<u64> out) {
  const i64 n = std::ssize(x_in);
  const bool first = party.rank == 0, by_bit = p.by_bit && p.room > 0;
  Words x(x_in.begin(), x_in.end());
  for (u64& word : x) word = (word + (first ? p.offset : 0)) & low_mask(p.bits);
  Bits w(n), low(n), difference(n);
  if (p.room > 0 && !p.by_bit) wrap(party, x, p.bits, w);
  for (i64 k = 0; k < n; ++k) low[k] = static_cast<u8>((x[k] >> (p.bits - 1)) & 1) ^ 1;
  PrivateProduct pending;
  RandomSelection random;
  Companion companion;
  if (p.room > 0)
    companion = {[&] {
                   if (by_bit) write_private_product(party, low, 1, pending);
                   write_random_selection(party, x, 1, p.room, random);
                 },
                 [&] {
                   if (by_bit) {
                     Words neither(n);
                     read_private_product(party, pending, neither);
                     for (i64 k = 0; k < n; ++k)
                       w[k] = static_cast<u8>(neither[k]) ^ (first ? 1 : 0);
                   }
                   read_random_selection(party, random);
                 },
                 [&] { write_difference(party, w, random.bits, difference); },
                 [&] { read_bits_xor(party, difference); }};
  own_cross_terms(party, x, p.bits, p.ell - 1, out, companion);
  Words carried(n, 0);
  if (p.room > 0) select_values(random, x, difference, carried);
  const u64 a = p.offset, constant = first ? a * a : 0;
  for (i64 k = 0; k < n; ++k) {
    const u64 square = x[k] * x[k] + 2 * out[k] - 2 * a * x[k] + constant;
    out[k] = (square - (p.room > 0 ? carried[k] << (p.bits + 1) : 0)) & low_mask(p.ell);
  }
}

void cost_square_chunk(ot::CostMeter& meter, const Plan& p, i64 n) {
  CompanionFlights flights;
  if (p.room > 0) {
    if (p.by_bit) {
      cost_draw_private_product(meter, n);
      flights.first = private_product_flight(n, 1);
    } else {
      cost_wrap(meter, n, p.bits);
    }
    cost_draw_random_selection(meter, n);
    flights.first = flights.first + random_selection_flight(n, 1, p.room);
    flights.last = {packed_bytes(n, 1), packed_bytes(n, 1)};
  }
  cost_own_cross_terms(meter, n, p.bits, p.ell - 1, flights);
}

}  // namespace

void square(ot::Party& party, std::span<const u64> x, FactorFormat format, int ell,
            std::span<u64> out) {
  const Plan p = plan(format, ell);
  expect(x.size() == out.size(), "square: lengths differ");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_square_chunk(meter, p, n); },
      [&](i64 begin, i64 n) {
        square_chunk(party, p, x.subspan(begin, n), out.subspan(begin, n));
      });
}

void cost_square(ot::CostMeter& meter, i64 count, FactorFormat format, int ell) {
  const Plan p = plan(format, ell);
  cost_in_chunks(meter, count, [&](ot::CostMeter& m, i64 n) { cost_square_chunk(m, p, n); });
}

}  // namespace privml::twopc
