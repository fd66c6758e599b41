// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/prepared_line.h"

#include <algorithm>

#include "base/error.h"
#include "twopc/select/bit_products.h"

namespace privml::twopc {
namespace {

// A constant's bit i is worth 2^(constant_shift + i), and a product of bits counts twice.
int product_width(const LinearShape& shape, int bit) {
  return shape.ell - shape.constant_shift - bit - 1;
}
int product_count(const LinearShape& shape) {
  return std::clamp(shape.ell - shape.constant_shift - 1, 0, shape.constant.bits);
}
bool is_negative(WordFormat format, int bit) { return format.is_signed && bit == format.bits - 1; }

std::vector<u8> bit_of(std::span<const u64> words, int bit) {
  std::vector<u8> out(words.size());
  for (std::size_t k = 0; k < words.size(); ++k) out[k] = static_cast<u8>(words[k] >> bit & 1);
  return out;
}

}  // namespace

void draw_line(ot::Party& party, i64 n, const LinearShape& shape, PreparedLine& line) {
  expect(shape.ell >= 1 && shape.ell <= 64 && shape.factor.bits <= shape.ell,
         "prepared line: the factor has more bits than the ring, or the ring more than 64");
  expect(shape.constant_shift >= 0 && shape.constant_shift < 64,
         "prepared line: constant_shift must lie in 0..63");
  line = {};
  line.shape = shape;
  line.n = n;
  line.factor.resize(shape.factor.bits);
  for (RandomSelection& one : line.factor) draw_random_selection(party, n, one);
}

void write_number(ot::Party& party, std::span<const u64> u, PreparedLine& line) {
  expect(
      std::ranges::none_of(line.factor, [](const RandomSelection& one) { return one.q.empty(); }),
      "prepared line: its number was written before");
  for (int i = 0; i < line.shape.factor.bits; ++i) {
    write_drawn_selection(party, u, line.shape.ell - i, line.factor[i]);
    line.factor[i].q = {};
  }
}

void read_number(ot::Party& party, PreparedLine& line) {
  for (RandomSelection& one : line.factor) {
    read_random_selection(party, one);
    one.t = {};
  }
}

void write_words(ot::Party& party, std::span<const u64> constant, std::span<const u64> factor,
                 PreparedLine& line) {
  const LinearShape& shape = line.shape;
  expect(line.constant.empty() && line.differences.empty(),
         "prepared line: its words were written before");
  line.constant.resize(product_count(shape));
  line.differences.assign(shape.factor.bits, std::vector<u8>(line.n));
  for (int i = 0; i < product_count(shape); ++i)
    write_private_product(party, bit_of(constant, i), product_width(shape, i), line.constant[i]);
  for (int i = 0; i < shape.factor.bits; ++i)
    write_difference(party, bit_of(factor, i), line.factor[i].bits, line.differences[i]);
}

void read_words(ot::Party& party, PreparedLine& line) {
  line.products.assign(line.constant.size(), AlignedVector<u64>(line.n));
  for (std::size_t i = 0; i < line.constant.size(); ++i)
    read_private_product(party, line.constant[i], line.products[i]);
  for (auto& difference : line.differences) read_bits_xor(party, difference);
}

void line_value(const PreparedLine& line, std::span<const u64> constant, std::span<const u64> u,
                std::span<u64> out) {
  const LinearShape& shape = line.shape;
  std::ranges::fill(out, 0);
  const auto add = [&](i64 k, u64 value, bool negative, int shift) {
    out[k] += (negative ? u64{0} - value : value) << shift;
  };
  for (int i = 0; i < shape.constant.bits && shape.constant_shift + i < shape.ell; ++i)
    for (i64 k = 0; k < line.n; ++k) {
      const u64 both = i < product_count(shape) ? line.products[i][k] : 0;
      add(k, (constant[k] >> i & 1) - 2 * both, is_negative(shape.constant, i),
          shape.constant_shift + i);
    }
  AlignedVector<u64> product(line.n);
  for (int i = 0; i < shape.factor.bits; ++i) {
    select_values(line.factor[i], u, line.differences[i], product);
    for (i64 k = 0; k < line.n; ++k) add(k, product[k], is_negative(shape.factor, i), i);
  }
  for (u64& word : out) word &= low_mask(shape.ell);
}

void cost_draw_line(ot::CostMeter& meter, i64 n, const LinearShape& shape) {
  for (int i = 0; i < shape.factor.bits; ++i) cost_draw_random_selection(meter, n);
  for (int i = 0; i < product_count(shape); ++i) cost_draw_private_product(meter, n);
}

Flight number_flight(i64 n, const LinearShape& shape) {
  Flight flight;
  for (int i = 0; i < shape.factor.bits; ++i)
    flight = flight + random_selection_flight(n, 1, shape.ell - i);
  return flight;
}

Flight words_flight(i64 n, const LinearShape& shape) {
  const i64 opened = shape.factor.bits * packed_bytes(n, 1);
  Flight flight{opened, opened};
  for (int i = 0; i < product_count(shape); ++i)
    flight = flight + private_product_flight(n, product_width(shape, i));
  return flight;
}

}  // namespace privml::twopc
