// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#include <arm_neon.h>

#include "crypto/gf128.h"

namespace privml::crypto::gf128 {
namespace {

uint64x2_t carryless(u64 a, u64 b) { return vreinterpretq_u64_p128(vmull_p64(a, b)); }

}  // namespace

void products_pmull(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                    i64 count, WideProduct* sums) {
  const uint64x2_t zero = vdupq_n_u64(0);
  for (i64 r = 0; r < row_count; ++r) {
    uint64x2_t low = zero, middle = zero, high = zero;
    for (i64 j = 0; j < count; ++j) {
      const Block x = rows[r * stride + j], c = coefficients[j];
      low = veorq_u64(low, carryless(x.lo, c.lo));
      high = veorq_u64(high, carryless(x.hi, c.hi));
      middle = veorq_u64(middle, veorq_u64(carryless(x.lo, c.hi), carryless(x.hi, c.lo)));
    }
    low = veorq_u64(low, vextq_u64(zero, middle, 1));
    high = veorq_u64(high, vextq_u64(middle, zero, 1));
    sums[r] ^= {{vgetq_lane_u64(low, 0), vgetq_lane_u64(low, 1)},
                {vgetq_lane_u64(high, 0), vgetq_lane_u64(high, 1)}};
  }
}

}  // namespace privml::crypto::gf128
#endif
