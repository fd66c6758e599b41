// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/quotient.h"

namespace privml::twopc {

void write_quotients(ot::Party& party, std::span<const u64> x, Quotients& state) {
  const i64 n = std::ssize(x);
  const QuotientShape& shape = state.shape;
  state.both.resize(n);
  state.carries.resize(n);
  write_random_bits(party, n, shape.ring, state.low);
  if (shape.wider() == 0) return;
  std::vector<u8> top(n);
  for (i64 i = 0; i < n; ++i) top[i] = x[i] >> (shape.bits - 1) & 1;
  write_private_product(party, top, shape.wider(), state.tops);
}

void read_quotients(ot::Party& party, Quotients& state) {
  read_random_bits(party, state.low);
  if (state.shape.wider() > 0) read_private_product(party, state.tops, state.both);
}

Flight quotients_flight(i64 n, const QuotientShape& shape) {
  const Flight converted = random_bits_flight(n, shape.ring);
  return shape.wider() == 0 ? converted : converted + private_product_flight(n, shape.wider());
}

void cost_draw_quotients(ot::CostMeter& meter, i64 n, const QuotientShape& shape) {
  cost_draw_random_bits(meter, n, shape.ring);
  if (shape.wider() > 0) cost_draw_private_product(meter, n);
}

void write_carries(ot::Party& party, std::span<const u8> carries, Quotients& state) {
  const PendingConversion conversions[] = {{state.low, carries, state.carries}};
  write_conversions(party, conversions, state.opened);
}

void read_carries(ot::Party& party, std::span<const u8> carries, Quotients& state) {
  const PendingConversion conversions[] = {{state.low, carries, state.carries}};
  read_conversions(party, conversions, state.opened);
}

Flight carries_flight(i64 n, const QuotientShape& shape) {
  const i64 bytes = shape.ring > 1 ? packed_bytes(n, 1) : 0;
  return {bytes, bytes};
}

AlignedVector<u64> quotients_of(std::span<const u64> x, const Quotients& state) {
  const QuotientShape& shape = state.shape;
  const int width = shape.bits - shape.shift;
  AlignedVector<u64> quotients(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const u64 top = x[i] >> (shape.bits - 1) & 1;
    const u64 wrap = shape.wider() > 0 ? (top - state.both[i]) << width : 0;
    const u64 high = (x[i] & low_mask(shape.bits)) >> shape.shift;
    quotients[i] = (high + state.carries[i] - wrap) & low_mask(shape.ring);
  }
  return quotients;
}

}  // namespace privml::twopc
