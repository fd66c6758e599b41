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

}  // namespace

void drop_last_bit(ot::Party& party, std::span<const u64> high, std::span<const u8> last, int bits,
                   std::span<u64> out) {
  expect(bits >= 1 && bits <= 64, "drop_last_bit: bits must be in 1..64");
  expect(high.size() == out.size() && last.size() == out.size(),
         "drop_last_bit: lengths must be equal");
  in_chunks(
      party, std::ssize(out), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, bits); },
      [&](i64 begin, i64 n) {
        PrivateProduct carry;
        write_private_product(party, last.subspan(begin, n), bits, carry);
        WipedVector<u64> carries(n);
        read_private_product(party, carry, carries);
        for (i64 i = 0; i < n; ++i)
          out[begin + i] = (high[begin + i] + carries[i]) & low_mask(bits);
      });
}

void drop_last_bit(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out) {
  expect(bits >= 1 && bits <= 63, "drop_last_bit: words hold up to 64 bits");
  WipedVector<u64> high(x.size());
  std::vector<u8> last(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    high[i] = x[i] >> 1;
    last[i] = static_cast<u8>(x[i] & 1);
  }
  drop_last_bit(party, high, last, bits, out);
}

void cost_drop_last_bit(ot::CostMeter& meter, i64 n, int bits) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, bits); });
}

}  // namespace privml::twopc
