// SPDX-License-Identifier: Apache-2.0
#include "fixmath/exponential.h"

#include <vector>

#include "fixmath/decay.h"
#include "twopc/chunk.h"
#include "twopc/extension.h"

namespace privml {
namespace {

Decay plan_negative(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp_negative");
  return plan_decay({.bits = in.bits, .scale = in.scale, .out_scale = out.scale});
}

void exp_negative_chunk(Party& party, const Decay& plan, std::span<const u64> x, int out_bits,
                        std::span<u64> y) {
  std::vector<u64> a(x.size()), value(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = (u64{0} - x[i]) & low_mask(plan.bits);
  decay(party, plan, a, value);
  extend_nonnegative(party, value, plan.out_scale + 2, out_bits, y);
}

void cost_exp_negative_chunk(CostMeter& meter, const Decay& plan, i64 n, int out_bits) {
  cost_decay(meter, plan, n);
  cost_extend_nonnegative(meter, n, plan.out_scale + 2, out_bits);
}

}  // namespace

void exp_negative(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                  std::span<u64> y) {
  const Decay plan = plan_negative(in, out);
  expect(x.size() == y.size(), "exp_negative: input and output lengths differ");
  in_chunks(
      party, std::ssize(x),
      [&](CostMeter& meter, i64 n) { cost_exp_negative_chunk(meter, plan, n, out.bits); },
      [&](i64 begin, i64 n) {
        exp_negative_chunk(party, plan, x.subspan(begin, n), out.bits, y.subspan(begin, n));
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
      meter, count,
      [&](CostMeter& inner, i64 n) { cost_exp_negative_chunk(inner, plan, n, out.bits); },
      kFunctionChunk);
}

}  // namespace privml
