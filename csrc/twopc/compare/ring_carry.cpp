// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/ring_carry.h"

#include <array>

#include "twopc/compare/comparison.h"
#include "twopc/compare/table_carry.h"
#include "twopc/select/random_selection.h"

namespace privml::twopc {

void carry_to_ring(ot::Party& party, std::span<const u64> x, int bits, int width,
                   std::span<u64> out) {
  const i64 n = std::ssize(x);
  if (prefers_table_carry(party, n, bits, width)) {
    TableCarry table;
    begin_table_carry(party, x, bits, width, table);
    return finish_table_carry(party, table, out);
  }
  RandomBits random;
  Comparison carry;
  write_random_bits(party, n, width, random);
  begin_comparison(party, {bits}, x, carry_flip(party.rank), carry);
  read_random_bits(party, random);
  finish_comparison(party, carry);
  const PendingConversion conversions[] = {{random, greater_of(carry), out}};
  finish_conversions(party, conversions);
}

void cost_carry_to_ring(ot::CostMeter& meter, i64 n, int bits, int width) {
  if (prefers_table_carry(meter, n, bits, width)) return cost_table_carry(meter, n, bits, width);
  const ComparisonShape shape{bits};
  cost_draw_random_bits(meter, n, width);
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, random_bits_flight(n, width) + comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
  cost_finish_conversions(meter, n, std::array{width});
}

}  // namespace privml::twopc
