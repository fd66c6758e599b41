// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/relu.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/sign_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {

void relu(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out,
          std::span<u8> nonnegative) {
  expect(bits >= 1 && bits <= 64, "relu: bits must be in 1..64");
  expect(out.size() == x.size() && nonnegative.size() == x.size(),
         "relu: outputs must be as long as x");
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_select_by_sign(meter, n, 1, bits, {}, 0); },
      [&](i64 begin, i64 n) {
        const std::span<const u64> values = x.subspan(begin, n);
        select_by_sign(
            party,
            {values, values, 1, bits, out.subspan(begin, n), nonnegative.subspan(begin, n), {}, 0});
      });
}

void relu(ot::Party& party, std::span<const u64> x, int bits, std::span<u64> out) {
  std::vector<u8> nonnegative(x.size());
  relu(party, x, bits, out, nonnegative);
}

void cost_relu(ot::CostMeter& meter, i64 n, int bits) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_select_by_sign(m, count, 1, bits, {}, 0);
  });
}

}  // namespace privml::twopc
