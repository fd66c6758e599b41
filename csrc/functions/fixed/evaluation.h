// SPDX-License-Identifier: Apache-2.0
// What all functions are made of: one plan per pair of formats, and its price. Plans depend on
// public formats only, so keeping them changes no result and reveals nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/function.h"

namespace privml::fixed {

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

// What a plan is chosen by, so that both parties and the clear functions choose the same with every
// provider: the bits on the wire of one element, a correlation and a hop having fixed prices.
struct Prices {
  double correlation = twopc::kCorrelationBits;
  double hop = 0;
};
i64 metered_bits(const std::function<void(ot::CostMeter&, i64)>& cost, Prices prices = {});
// Of body(evaluator, x).
template <class Body>
i64 evaluated_bits(Body&& body, Prices prices = {}) {
  return metered_bits(
      [&](ot::CostMeter& meter, i64 n) {
        functions::Evaluator evaluator(meter, n);
        body(evaluator, evaluator.ring(n));
      },
      prices);
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

}  // namespace privml::fixed
