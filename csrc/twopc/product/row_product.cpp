// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/row_product.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/product/private_product.h"
#include "twopc/product/vector_tiles.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"
#include "twopc/width/extension.h"

namespace privml::twopc {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

struct Shape {
  i64 rows, length;
  FactorFormat x;
  int y_bits, ell;
  i64 size() const { return rows * length; }
  // Whether a bit of x is known, so that it is extended beside the choices.
  bool extends_beside() const { return x.bits < ell && (x.nonnegative || x.bounded); }
  // Whether y's carry counts.
  bool wraps() const { return y_bits < ell; }
  // Makes a bounded x one whose most significant bit is 0.
  u64 offset() const { return x.bounded ? u64{1} << (x.bits - 2) : 0; }
  std::vector<ProductBlock> blocks() const {
    return std::vector<ProductBlock>(rows, {1, 1, length});
  }
  ProductFormat format() const { return {y_bits, false, ell}; }
};

void check(FactorFormat x, int y_bits, int ell) {
  expect(x.bits >= 1 && x.bits <= ell && y_bits >= 2 && y_bits <= ell && ell <= 64,
         "multiply_rows: widths must satisfy max(m, n) <= ell <= 64");
  expect(!x.bounded || (x.is_signed && x.bits >= 2 && !x.nonnegative),
         "multiply_rows: a bounded factor is signed, and nothing else is known of it");
  expect(!x.negative, "multiply_rows: x's most significant bit may be known as 0");
}

u8 top_bit(u64 word, int bits) { return static_cast<u8>(word >> (bits - 1) & 1); }

// Carries that follow from known bits: 1 less the product of the shares' complemented top bits.
Bits complements(std::span<const u64> x, int bits, u64 added) {
  Bits out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = 1 ^ top_bit(x[i] + added, bits);
  return out;
}

// x in Z_{2^ell}, from the products of its complements.
void extend(const ot::Party& party, const Shape& s, std::span<const u64> x, const Words& products,
            Words& wide) {
  const bool first = party.rank == 0;
  const u64 added = first ? s.offset() : 0, one = first ? 1 : 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    wide[i] = ((x[i] + added) & low_mask(s.x.bits)) - ((one - products[i]) << s.x.bits) - added;
}

CompanionFlights draw_companion(ot::CostMeter& meter, const Shape& s) {
  CompanionFlights flights;
  if (s.extends_beside()) {
    cost_draw_private_product(meter, s.size());
    flights.first = private_product_flight(s.size(), s.ell - s.x.bits);
  }
  if (!s.wraps()) return flights;
  cost_draw_private_product(meter, s.rows);
  cost_draw_random_selection(meter, s.rows);
  flights.first = flights.first + private_product_flight(s.rows, 1);
  const i64 opened = packed_bytes(s.rows, 1);
  flights.last =
      random_selection_flight(s.rows, s.length, s.ell - s.y_bits) + Flight{opened, opened};
  return flights;
}

// Of the companion and of the product's first choices: no flight of theirs waits for correlations.
template <class Planner>
std::array<i64, 2> first_correlations(const Planner& planner, const Shape& s) {
  return ot::count_correlations(planner, [&](ot::CostMeter& meter) {
    draw_companion(meter, s);
    const i64 choices =
        chunk_cots(product_chunks(s.blocks(), s.format(), meter.chunk_factor)[0], s.format());
    for (int sender : {0, 1}) meter.draw(sender, choices);
  });
}

// The first flight takes along what extends x and finds y's carries, the last one what selects x by
// these.
void multiply_chunk(ot::Party& party, const Shape& s, std::span<const u64> x,
                    std::span<const u64> y, std::span<u64> out) {
  const u64 added = party.rank == 0 ? s.offset() : 0;
  Words wide(x.begin(), x.end()), products(x.size()), number(y.begin(), y.end());
  Words carries(y.size()), carried(x.size(), 0);
  for (u64& word : number) word &= low_mask(s.y_bits);
  if (!s.extends_beside())
    (s.x.is_signed ? sign_extend : zero_extend)(party, x, s.x.bits, s.ell, wide);
  const auto cots = first_correlations(party, s);
  ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
  PrivateProduct of_x, of_y;
  RandomSelection random;
  Bits wraps(y.size()), difference(y.size());
  random.length = s.length;
  const Companion companion{
      [&] {
        if (s.extends_beside())
          write_private_product(party, complements(x, s.x.bits, added), s.ell - s.x.bits, of_x);
        if (!s.wraps()) return;
        write_private_product(party, complements(number, s.y_bits, 0), 1, of_y);
        draw_random_selection(party, s.rows, random);
      },
      [&] {
        if (s.extends_beside()) {
          read_private_product(party, of_x, products);
          extend(party, s, x, products, wide);
        }
        if (s.wraps()) read_private_product(party, of_y, carries);
      },
      [&] {
        if (!s.wraps()) return;
        for (std::size_t r = 0; r < wraps.size(); ++r)
          wraps[r] = static_cast<u8>(carries[r]) ^ (party.rank == 0 ? 1 : 0);
        write_drawn_selection(party, wide, s.ell - s.y_bits, random);
        write_difference(party, wraps, random.bits, difference);
      },
      [&] {
        if (!s.wraps()) return;
        read_random_selection(party, random);
        read_bits_xor(party, difference);
        select_values(random, wide, difference, carried);
      }};
  vector_products(party, s.blocks(), s.format(), number, wide, out, companion);
  for (i64 r = 0; r < s.rows; ++r)
    for (i64 j = r * s.length; j < (r + 1) * s.length; ++j) {
      const u64 wrapped = s.wraps() ? carried[j] << s.y_bits : 0;
      out[j] = (out[j] + number[r] * wide[j] - wrapped) & low_mask(s.ell);
    }
}

// Rows in chunks of about kChunk elements times the factor: chunk(begin, count).
template <class Chunk>
void by_rows(i64 rows, i64 length, i64 chunk_factor, Chunk&& chunk) {
  const i64 limit = std::max<i64>(kChunk * chunk_factor / length, 1);
  for (i64 begin = 0; begin < rows; begin += limit) chunk(begin, std::min(limit, rows - begin));
}

}  // namespace

void multiply_rows(ot::Party& party, std::span<const u64> x, FactorFormat x_format,
                   std::span<const u64> y, int y_bits, int ell, std::span<u64> out) {
  check(x_format, y_bits, ell);
  const i64 rows = std::ssize(y), length = rows == 0 ? 0 : std::ssize(x) / rows;
  expect(std::ssize(x) == rows * length && out.size() == x.size(),
         "multiply_rows: x and out must have rows of one length");
  if (x.empty()) return;
  by_rows(rows, length, party.chunk_factor, [&](i64 begin, i64 count) {
    const Shape s{count, length, x_format, y_bits, ell};
    multiply_chunk(party, s, x.subspan(begin * length, s.size()), y.subspan(begin, count),
                   out.subspan(begin * length, s.size()));
  });
}

void cost_multiply_rows(ot::CostMeter& meter, i64 rows, i64 length, FactorFormat x_format,
                        int y_bits, int ell) {
  check(x_format, y_bits, ell);
  if (rows * length == 0) return;
  by_rows(rows, length, meter.chunk_factor, [&](i64, i64 count) {
    const Shape s{count, length, x_format, y_bits, ell};
    if (!s.extends_beside()) cost_extend(meter, s.size(), x_format.bits, ell);
    const auto cots = first_correlations(meter, s);
    meter.reserve(cots[0], cots[1]);
    const CompanionFlights flights = draw_companion(meter, s);
    cost_vector_products(meter, {true, true}, s.blocks(), s.format(), flights);
  });
}

}  // namespace privml::twopc
