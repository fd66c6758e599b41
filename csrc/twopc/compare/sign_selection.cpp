// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/sign_selection.h"

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/select/random_selection.h"

namespace privml::twopc {

// [x >= 0] = 1 ^ msb(x0) ^ msb(x1) ^ carry of the low bits - 1 bits.
void select_by_sign(ot::Party& party, const SignSelection& task) {
  const i64 n = std::ssize(task.sign);
  const bool compares = task.bits > 1;
  RandomSelection random;
  Comparison carry;
  write_random_selection(party, task.values, task.length, task.bits, random);
  if (compares) {
    begin_comparison(party, {task.bits - 1}, task.sign, carry_flip(party.rank), carry);
  }
  read_random_selection(party, random);
  if (compares) finish_comparison(party, carry);
  const u8 first = party.rank == 0 ? 1 : 0;
  for (i64 i = 0; i < n; ++i) {
    task.nonnegative[i] = static_cast<u8>(task.sign[i] >> (task.bits - 1) & 1) ^ first;
  }
  if (compares) {
    const std::span<const u8> w = greater_of(carry);
    for (i64 i = 0; i < n; ++i) task.nonnegative[i] ^= w[i];
  }
  AlignedVector<u8> difference(n);
  write_difference(party, task.nonnegative, random.bits, difference);
  PendingProducts pending;
  if (!task.products.empty()) write_products(party, task.products, task.product_n, pending);
  read_bits_xor(party, difference);
  if (!task.products.empty()) read_products(party, pending);
  select_values(random, task.values, difference, task.out);
}

void cost_select_by_sign(ot::CostMeter& meter, i64 n, i64 length, int bits,
                         std::span<const int> product_widths, i64 product_n) {
  const ComparisonShape shape{bits - 1};
  const bool compares = bits > 1;
  cost_draw_random_selection(meter, n);
  if (compares) cost_draw_comparison(meter, shape, n);
  cost_flight(meter, random_selection_flight(n, length, bits) +
                         (compares ? comparison_flight(meter, shape, n) : Flight{}));
  if (compares) cost_finish_comparison(meter, shape, n);
  cost_draw_products(meter, product_widths, product_n);
  const i64 opened = packed_bytes(n, 1) + products_bytes(product_widths, product_n);
  meter.exchange(opened, opened);
}

}  // namespace privml::twopc
