// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/function.h"

#include <algorithm>

#include "functions/evaluator/chunks.h"
#include "functions/fixed/evaluation.h"

namespace privml::fixed {
namespace {

constexpr i64 kSample = 1024;  // elements of an estimate

}  // namespace

void evaluate_function(ot::Party& party, FixedFunction function, std::span<const u64> x,
                       FixedFormat in, FixedFormat out, std::span<u64> y) {
  expect(x.size() == y.size(), "fixed-point function: input and output lengths differ");
  if (x.empty()) {  // the formats are checked all the same
    ot::count_correlations(party, [&](ot::CostMeter& meter) {
      functions::Evaluator evaluator(meter, 0);
      function(evaluator, evaluator.ring(0), in, out);
    });
  }
  functions::evaluate_chunks(
      party, std::ssize(x), kFunctionChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        evaluator.store(function(evaluator, evaluator.load(x, begin), in, out), out.bits, y, begin);
      });
}

void cost_function(ot::CostMeter& meter, FixedFunction function, i64 count, FixedFormat in,
                   FixedFormat out) {
  functions::cost_chunks(meter, count, kFunctionChunk, [&](functions::Evaluator& evaluator, i64) {
    function(evaluator, evaluator.ring(evaluator.n), in, out);
  });
}

i64 metered_bits(const std::function<void(ot::CostMeter&, i64)>& cost, Prices prices) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  meter.correlation_bits = prices.correlation;
  cost(meter, kSample);
  const double correlations = static_cast<double>(meter.cots[0] + meter.cots[1]);
  const i64 hops = std::max(meter.depth[0], meter.depth[1]);
  return (8 * (meter.bytes[0] + meter.bytes[1]) +
          static_cast<i64>(prices.correlation * correlations)) /
             kSample +
         static_cast<i64>(prices.hop * static_cast<double>(hops));
}

}  // namespace privml::fixed
