// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sigmoid.h"

#include "functions/fixed/smooth.h"

namespace privml {
namespace {

constexpr Smooth kSigmoid{"sigmoid", Series::sigmoid_tail, SmoothForm::rising, -1, 5};
constexpr Smooth kTanh{"tanh", Series::tanh_tail, SmoothForm::odd, -1, 4};

}  // namespace

void sigmoid(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out,
             std::span<u64> y) {
  smooth(party, kSigmoid, x, in, out, y);
}
void clear_sigmoid(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kSigmoid, x, in, out, y);
}
void cost_sigmoid(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kSigmoid, in, out);
}

void tanh(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  smooth(party, kTanh, x, in, out, y);
}
void clear_tanh(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(kTanh, x, in, out, y);
}
void cost_tanh(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost_smooth(meter, count, kTanh, in, out);
}

}  // namespace privml
