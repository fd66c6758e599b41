// SPDX-License-Identifier: Apache-2.0
// Runs an algorithm written for an Evaluator on whole arrays, chunk by chunk; and its cost.
#pragma once

#include "functions/evaluator/evaluator.h"
#include "twopc/session/chunk.h"

namespace privml::functions {

// Calls body(evaluator, begin) for consecutive ranges of `limit` elements, each on correlations
// reserved in one go; and the same on a meter.
template <class Body>
void evaluate_chunks(ot::Party& party, i64 n, i64 limit, Body&& body) {
  twopc::in_chunks(
      party, n,
      [&](ot::CostMeter& meter, i64 count) {
        Evaluator evaluator(meter, count);
        body(evaluator, 0);
      },
      [&](i64 begin, i64 count) {
        Evaluator evaluator(party, count);
        body(evaluator, begin);
      },
      limit);
}

template <class Body>
void cost_chunks(ot::CostMeter& meter, i64 n, i64 limit, Body&& body) {
  twopc::cost_in_chunks(
      meter, n,
      [&](ot::CostMeter& inner, i64 count) {
        Evaluator evaluator(inner, count);
        body(evaluator, 0);
      },
      limit);
}

}  // namespace privml::functions
