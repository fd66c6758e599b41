// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/last_bit.h"

#include "base/error.h"
#include "twopc/product/private_product.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

void cost_chunk(ot::CostMeter& meter, i64 n, int bits) {
  cost_draw_private_product(meter, n);
  cost_flight(meter, private_product_flight(n, bits));
}

// `last(i)` is the last bit of number i, `high(i)` what is above it.
template <class Last, class High>
void drop(ot::Party& party, Last&& last, High&& high, int bits, std::span<u64> out) {
  in_chunks(
      party, std::ssize(out), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, bits); },
      [&](i64 begin, i64 n) {
        WipedVector<u8> own(n);
        for (i64 i = 0; i < n; ++i) own[i] = last(begin + i);
        PrivateProduct carry;
        write_private_product(party, own, bits, carry);
        WipedVector<u64> carries(n);
        read_private_product(party, carry, carries);
        for (i64 i = 0; i < n; ++i)
          out[begin + i] = (high(begin + i) + carries[i]) & low_mask(bits);
      });
}

}  // namespace

void drop_last_bit(ot::Party& party, std::span<const u64> high, std::span<const u8> last, int bits,
                   std::span<u64> out) {
  expect(bits >= 1 && bits <= 64, "drop_last_bit: bits must be in 1..64");
  expect(high.size() == out.size() && last.size() == out.size(),
         "drop_last_bit: lengths must be equal");
  drop(party, [&](i64 i) { return last[i]; }, [&](i64 i) { return high[i]; }, bits, out);
}

void drop_last_bit(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out) {
  expect(bits >= 1 && bits <= 63, "drop_last_bit: words hold up to 64 bits");
  expect(x.size() == out.size(), "drop_last_bit: lengths must be equal");
  drop(
      party, [&](i64 i) { return static_cast<u8>(x[i] & 1); }, [&](i64 i) { return x[i] >> 1; },
      bits, out);
}

void cost_drop_last_bit(ot::CostMeter& meter, i64 n, int bits) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, bits); });
}

}  // namespace privml::twopc
