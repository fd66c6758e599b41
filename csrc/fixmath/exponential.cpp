// SPDX-License-Identifier: Apache-2.0
#include "fixmath/exponential.h"

#include <algorithm>
#include <vector>

#include "fixmath/decay.h"
#include "fixmath/exponential_table.h"
#include "fixmath/remembered.h"
#include "twopc/chunk.h"
#include "twopc/extension.h"
#include "twopc/relu.h"

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

// e^x = e^(most / 2^scale) e^-(a / 2^scale) with a = most - x >= 0.
struct AnySign {
  FixedFormat in;
  u64 most;
  bool saturates;
  Decay decay;
};

AnySign plan_any_sign(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "exp");
  const u64 largest_input = low_mask(in.bits - 1);
  const auto [most, start] = largest_exponential(out.bits - 1 - out.scale, in.scale, largest_input);
  return {in, most, most < largest_input,
          plan_decay({.bits = in.bits,
                      .scale = in.scale,
                      .out_scale = out.bits - 1,
                      .out_bits = out.bits,
                      .start = start,
                      .below_one = true})};
}

std::shared_ptr<const Decay> negative(FixedFormat in, FixedFormat out) {
  static Remembered<Decay> plans;
  return plans.get(0, in, out, [&] { return plan_negative(in, out); });
}

std::shared_ptr<const AnySign> any_sign(FixedFormat in, FixedFormat out) {
  static Remembered<AnySign> plans;
  return plans.get(0, in, out, [&] { return plan_any_sign(in, out); });
}

void exp_chunk(Party& party, const AnySign& plan, std::span<const u64> x, std::span<u64> y) {
  std::vector<u64> a(x.begin(), x.end());
  if (plan.saturates) sign_extend(party, x, plan.in.bits, plan.in.bits + 1, a);
  const u64 most = party.rank == 0 ? plan.most : 0;
  for (u64& word : a) word = most - word;
  if (plan.saturates) relu(party, a, plan.in.bits + 1, a);
  decay(party, plan.decay, a, y);
}

void cost_exp_chunk(CostMeter& meter, const AnySign& plan, i64 n) {
  if (plan.saturates) {
    cost_extend(meter, n, plan.in.bits, plan.in.bits + 1);
    cost_relu(meter, n, plan.in.bits + 1);
  }
  cost_decay(meter, plan.decay, n);
}

}  // namespace

void exp_negative(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
                  std::span<u64> y) {
  const auto remembered = negative(in, out);
  const Decay& plan = *remembered;
  expect(x.size() == y.size(), "exp_negative: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_decay(meter, plan, n); },
      [&](i64 begin, i64 n) {
        decay(party, plan, negated(x.subspan(begin, n)), y.subspan(begin, n));
      },
      kFunctionChunk);
}

void clear_exp_negative(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  const auto remembered = negative(in, out);
  const Decay& plan = *remembered;
  expect(x.size() == y.size(), "exp_negative: input and output lengths differ");
  std::vector<u64> a(x.size()), value(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = u64{0} - static_cast<u64>(x[i]);
  clear_decay(plan, a, value);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<i64>(value[i]);
}

void cost_exp_negative(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  const auto remembered = negative(in, out);
  const Decay& plan = *remembered;
  cost_in_chunks(
      meter, count, [&](CostMeter& inner, i64 n) { cost_decay(inner, plan, n); }, kFunctionChunk);
}

void exp(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  const auto remembered = any_sign(in, out);
  const AnySign& plan = *remembered;
  expect(x.size() == y.size(), "exp: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_exp_chunk(meter, plan, n); },
      [&](i64 begin, i64 n) { exp_chunk(party, plan, x.subspan(begin, n), y.subspan(begin, n)); },
      kFunctionChunk);
}

void clear_exp(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  const auto remembered = any_sign(in, out);
  const AnySign& plan = *remembered;
  expect(x.size() == y.size(), "exp: input and output lengths differ");
  std::vector<u64> a(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const i64 distance = static_cast<i64>(plan.most) - to_signed(static_cast<u64>(x[i]), in.bits);
    a[i] = static_cast<u64>(std::max<i64>(distance, 0));
  }
  clear_decay(plan.decay, a, a);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<i64>(a[i]);
}

void cost_exp(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  const auto remembered = any_sign(in, out);
  const AnySign& plan = *remembered;
  cost_in_chunks(
      meter, count, [&](CostMeter& inner, i64 n) { cost_exp_chunk(inner, plan, n); },
      kFunctionChunk);
}

}  // namespace privml
