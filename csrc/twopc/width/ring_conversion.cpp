// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/ring_conversion.h"

#include "base/buffer.h"
#include "base/error.h"
#include "twopc/session/chunk.h"
#include "twopc/width/signed_wrap.h"

namespace privml {
namespace {

void convert_chunk(Party& party, std::span<const u64> x, int bits, int width, std::span<u64> out) {
  const u64 bound = u64{1} << (bits - 1);
  const SignedWrapPlan plan = plan_signed_wrap(bits + 1, bound);
  AlignedVector<u64> shifted(x.begin(), x.end()), other(x.size());
  for (u64& word : shifted) word += u64{1} << bits;
  PrivateProduct own, moved;
  write_signed_wrap(party, plan, x, bits + 1, bound, width, own);
  write_signed_wrap(party, plan, shifted, bits + 1, bound, width, moved);
  read_signed_wrap(party, plan, x, bits + 1, bound, own, out);
  read_signed_wrap(party, plan, shifted, bits + 1, bound, moved, other);
  const u64 one = party.rank == 0 ? 1 : 0;
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = (out[i] + other[i] - one) & low_mask(width);
}

void cost_chunk(CostMeter& meter, i64 n, int width) {
  cost_draw_private_product(meter, n);
  cost_draw_private_product(meter, n);
  cost_flight(meter, private_product_flight(n, width) + private_product_flight(n, width));
}

}  // namespace

void converted_wrap(Party& party, std::span<const u64> x, int from, int bits, int width,
                    std::span<u64> out) {
  expect(bits >= 1 && bits < from && from <= 64, "converted_wrap: need 1 <= bits < from <= 64");
  expect(width >= 1 && width <= 64, "converted_wrap: width must be in 1..64");
  expect(x.size() == out.size(), "converted_wrap: out must be as long as x");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_chunk(meter, n, width); },
      [&](i64 begin, i64 n) {
        convert_chunk(party, x.subspan(begin, n), bits, width, out.subspan(begin, n));
      });
}

void cost_converted_wrap(CostMeter& meter, i64 n, int width) {
  cost_in_chunks(meter, n, [&](CostMeter& m, i64 count) { cost_chunk(m, count, width); });
}

}  // namespace privml
