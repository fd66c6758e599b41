// SPDX-License-Identifier: Apache-2.0
// How every function runs: one plan per pair of formats, then chunk by chunk. Plans depend on
// public formats only, so keeping them changes no result and reveals nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "functions/fixed/format.h"
#include "twopc/session/chunk.h"

namespace privml {

// Arguments of at most so many bits are looked up without a polynomial.
inline constexpr int kDirectBits = 9;

template <class Plan>
class PlanCache {
 public:
  // The plan of function number `function` for these formats; `make` makes it at the first call.
  // Exceptions of `make` go to the caller.
  std::shared_ptr<const Plan> get(int function, FixedFormat in, FixedFormat out,
                                  const std::function<Plan()>& make) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<const Plan>& plan = plans_[{function, in.bits, in.scale, out.bits, out.scale}];
    if (!plan) plan = std::make_shared<const Plan>(make());
    return plan;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int, int, int>, std::shared_ptr<const Plan>> plans_;
};

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
