// SPDX-License-Identifier: Apache-2.0
#include "fixmath/sigmoid.h"

#include <algorithm>
#include <vector>

#include "fixmath/decay.h"
#include "fixmath/unit_reciprocal.h"
#include "twopc/chunk.h"
#include "twopc/multiplex.h"
#include "twopc/relu.h"

namespace privml {
namespace {

constexpr int kLeastDecayScale = 4;

// y = middle +- r, by the sign of x. At scale 0 a sigmoid's result is that sign.
struct Curve {
  int in_bits;
  int out_bits;
  u64 middle;
  bool sign_only;
  Decay decay;
  UnitReciprocal reciprocal;
};

// u = e^-z with z = |x| in units of 2^-in_scale; r has `scale` fraction bits.
Curve plan_curve(FixedFormat in, FixedFormat out, int in_scale, int scale, u64 middle) {
  Curve curve{in.bits, out.bits, middle, scale == 0, {}, {}};
  if (curve.sign_only) return curve;
  const int fraction = std::max(scale, kLeastDecayScale);
  curve.decay = plan_decay({.bits = in.bits,
                            .scale = in_scale,
                            .out_scale = fraction,
                            .out_bits = fraction,
                            .below_one = true});
  curve.reciprocal =
      plan_unit_reciprocal({.fraction = fraction, .scale = scale, .out_bits = out.bits});
  return curve;
}

Curve plan_sigmoid(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "sigmoid");
  const u64 middle = out.scale > 0 ? u64{1} << (out.scale - 1) : 0;
  return plan_curve(in, out, in.scale, out.scale, middle);
}

Curve plan_tanh(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "tanh");
  return plan_curve(in, out, in.scale - 1, out.scale + 1, 0);
}

void curve_chunk(Party& party, const Curve& curve, std::span<const u64> x, std::span<u64> y) {
  const i64 n = std::ssize(x);
  std::vector<u64> value(n), upper(n);
  std::vector<u8> nonnegative(n);
  relu(party, x, curve.in_bits, value, nonnegative);
  if (curve.sign_only) {
    std::ranges::fill(value, party.rank == 0 ? 1 : 0);
    return multiplex(party, nonnegative, value, curve.out_bits, y);
  }
  for (i64 k = 0; k < n; ++k) value[k] = (2 * value[k] - x[k]) & low_mask(curve.in_bits);
  decay(party, curve.decay, value, value);
  unit_reciprocal(party, curve.reciprocal, value, value);
  multiplex(party, nonnegative, value, curve.out_bits, upper);
  const u64 middle = party.rank == 0 ? curve.middle : 0;
  for (i64 k = 0; k < n; ++k) y[k] = (middle + 2 * upper[k] - value[k]) & low_mask(curve.out_bits);
}

void cost_curve_chunk(CostMeter& meter, const Curve& curve, i64 n) {
  cost_relu(meter, n, curve.in_bits);
  if (!curve.sign_only) {
    cost_decay(meter, curve.decay, n);
    cost_unit_reciprocal(meter, curve.reciprocal, n);
  }
  cost_multiplex(meter, n, curve.out_bits);
}

void run(Party& party, const Curve& curve, std::span<const u64> x, std::span<u64> y) {
  expect(x.size() == y.size(), "sigmoid, tanh: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_curve_chunk(meter, curve, n); },
      [&](i64 begin, i64 n) {
        curve_chunk(party, curve, x.subspan(begin, n), y.subspan(begin, n));
      },
      kFunctionChunk);
}

void run_clear(const Curve& curve, std::span<const i64> x, std::span<i64> y) {
  expect(x.size() == y.size(), "sigmoid, tanh: input and output lengths differ");
  std::vector<u64> value(x.size());
  const auto signed_input = [&](std::size_t k) {
    return to_signed(static_cast<u64>(x[k]), curve.in_bits);
  };
  for (std::size_t k = 0; k < x.size(); ++k) {
    const i64 number = signed_input(k);
    value[k] = static_cast<u64>(number < 0 ? -number : number);
  }
  if (!curve.sign_only) {
    clear_decay(curve.decay, value, value);
    clear_unit_reciprocal(curve.reciprocal, value, value);
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    const bool nonnegative = signed_input(k) >= 0;
    const i64 middle = static_cast<i64>(curve.middle);
    const i64 distance = to_signed(value[k], curve.out_bits);
    y[k] = curve.sign_only ? nonnegative : nonnegative ? middle + distance : middle - distance;
  }
}

void run_cost(CostMeter& meter, const Curve& curve, i64 count) {
  cost_in_chunks(
      meter, count, [&](CostMeter& inner, i64 n) { cost_curve_chunk(inner, curve, n); },
      kFunctionChunk);
}

}  // namespace

void sigmoid(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
             std::span<u64> y) {
  run(party, plan_sigmoid(in, out), x, y);
}

void clear_sigmoid(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  run_clear(plan_sigmoid(in, out), x, y);
}

void cost_sigmoid(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  run_cost(meter, plan_sigmoid(in, out), count);
}

void tanh(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  run(party, plan_tanh(in, out), x, y);
}

void clear_tanh(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  run_clear(plan_tanh(in, out), x, y);
}

void cost_tanh(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  run_cost(meter, plan_tanh(in, out), count);
}

}  // namespace privml
