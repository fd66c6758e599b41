// SPDX-License-Identifier: Apache-2.0
// Runs a function's protocol: compares lengths and cuts long inputs into chunks.
#pragma once

#include "functions/fixed/format.h"
#include "twopc/session/chunk.h"

namespace privml {

// Calls run(party, plan, part of x, part of y) for every chunk; cost(meter, plan, n) predicts the
// chunk's correlations.
template <class Plan, class Run, class Cost>
void run_function(Party& party, const Plan& plan, std::span<const u64> x, std::span<u64> y,
                  Run&& run, Cost&& cost) {
  expect(x.size() == y.size(), "fixed-point function: input and output lengths differ");
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost(meter, plan, n); },
      [&](i64 begin, i64 n) { run(party, plan, x.subspan(begin, n), y.subspan(begin, n)); },
      kFunctionChunk);
}

template <class Plan, class Cost>
void cost_function(CostMeter& meter, i64 count, const Plan& plan, Cost&& cost) {
  cost_in_chunks(
      meter, count, [&](CostMeter& inner, i64 n) { cost(inner, plan, n); }, kFunctionChunk);
}

// value(plan, x as a signed number of the format) for every element.
template <class Plan, class Value>
void clear_function(const Plan& plan, FixedFormat in, std::span<const i64> x, std::span<i64> y,
                    Value&& value) {
  expect(x.size() == y.size(), "fixed-point function: input and output lengths differ");
  for (std::size_t k = 0; k < x.size(); ++k) {
    y[k] = value(plan, to_signed(static_cast<u64>(x[k]), in.bits));
  }
}

}  // namespace privml
