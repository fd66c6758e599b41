// SPDX-License-Identifier: Apache-2.0
// Choices by shared bits.
//
// Functionality  select: out[i] = choice[i] ? x[i] : y[i], for choices that are 0 or 1 as numbers;
//                relu: out[i] = x[i] if x[i] >= 0 as a signed number of `width` bits, else 0.
// Leakage        none. Cost: select, one product; relu, one most significant bit, one bit as a
//                number and one product.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// Throws InvalidArgument if lengths differ. out may be an input.
template <class R>
void select(Session<R>& session, WordView<R> choice, WordView<R> x, WordView<R> y, WordSpan<R> out);
template <class R>
void cost_select(CostMeter& meter, i64 n);

// 1 <= width <= k.
template <class R>
void relu(Session<R>& session, WordView<R> x, int width, WordSpan<R> out);
template <class R>
void cost_relu(CostMeter& meter, i64 n, int width);

}  // namespace privml::spdz2k
