// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/gelu.h"

#include "functions/fixed/smooth.h"

namespace privml {
namespace {

constexpr Smooth kErf{"erf", Series::erf_tail, SmoothForm::odd, -1, 3};
constexpr Smooth kGelu{"gelu", Series::gelu_tail, SmoothForm::line, -1, 3};
constexpr Smooth kSilu{"silu", Series::silu_tail, SmoothForm::line, -1, 5};
constexpr Smooth kSoftplus{"softplus", Series::softplus_tail, SmoothForm::line, 1, 5};

}  // namespace

void erf(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  smooth(party, kErf, x, in, out, y);
}
void clear_erf(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kErf, x, in, out, y);
}
void cost_erf(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kErf, in, out);
}

void gelu(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  smooth(party, kGelu, x, in, out, y);
}
void clear_gelu(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kGelu, x, in, out, y);
}
void cost_gelu(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kGelu, in, out);
}

void silu(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  smooth(party, kSilu, x, in, out, y);
}
void clear_silu(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kSilu, x, in, out, y);
}
void cost_silu(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kSilu, in, out);
}

void softplus(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
              std::span<u64> y) {
  smooth(party, kSoftplus, x, in, out, y);
}
void clear_softplus(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kSoftplus, x, in, out, y);
}
void cost_softplus(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kSoftplus, in, out);
}

}  // namespace privml
