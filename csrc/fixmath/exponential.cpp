// SPDX-License-Identifier: Apache-2.0
#include "fixmath/exponential.h"

#include <vector>

#include "fixmath/decay.h"
#include "twopc/chunk.h"

namespace privml {
namespace {

Decay plan_negative(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp_negative");
  return plan_decay(
      {.bits = in.bits, .scale = in.scale, .out_scale = out.scale, .out_bits = out.bits});
}

std::vector<u64> negated(std::span<const u64> x) {
  std::vector<u64> a(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = u64{0} - x[i];
  return a;
}

}  // namespace

void exp_negative(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                  std::span<u64> y) {
  const Decay plan = plan_negative(in, out);
  expect(x.size() == y.size(), "exp_negative: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_decay(meter, plan, n); },
      [&](i64 begin, i64 n) {
        decay(party, plan, negated(x.subspan(begin, n)), y.subspan(begin, n));
      },
      kFunctionChunk);
}

void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  const Decay plan = plan_negative(in, out);
  expect(x.size() == y.size(), "exp_negative: input and output lengths differ");
  std::vector<u64> a(x.size()), value(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = u64{0} - static_cast<u64>(x[i]);
  clear_decay(plan, a, value);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<i64>(value[i]);
}

void cost_exp_negative(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  const Decay plan = plan_negative(in, out);
  cost_in_chunks(
      meter, count, [&](CostMeter& inner, i64 n) { cost_decay(inner, plan, n); }, kFunctionChunk);
}

}  // namespace privml
