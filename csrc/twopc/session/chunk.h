// SPDX-License-Identifier: Apache-2.0
// Long inputs are processed chunk by chunk, so that memory stays bounded; each chunk's correlations
// are reserved in one go.
#pragma once

#include <algorithm>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// Elements that a protocol processes at once, times the chunk factor of the party: every chunk
// takes the protocol's depth, so a slow link wants few of them.
inline constexpr i64 kChunk = i64{1} << 16;

// Calls cost(meter, count) on the correlations of `count` elements, then chunk(begin, count), for
// consecutive ranges of at most `limit` elements
// times the chunk factor.
template <class Cost, class Chunk>
void in_chunks(ot::Party& party, i64 n, Cost&& cost, Chunk&& chunk, i64 limit = kChunk) {
  limit *= party.chunk_factor;
  for (i64 begin = 0; begin < n; begin += limit) {
    const i64 count = std::min(limit, n - begin);
    const auto cots =
        ot::count_correlations(party, [&](ot::CostMeter& meter) { cost(meter, count); });
    ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
    chunk(begin, count);
  }
}

// The same walk on a meter.
template <class Cost>
void cost_in_chunks(ot::CostMeter& meter, i64 n, Cost&& cost, i64 limit = kChunk) {
  limit *= meter.chunk_factor;
  for (i64 begin = 0; begin < n; begin += limit) {
    const i64 count = std::min(limit, n - begin);
    const auto cots =
        ot::count_correlations(meter, [&](ot::CostMeter& inner) { cost(inner, count); });
    meter.reserve(cots[0], cots[1]);
    cost(meter, count);
  }
}

}  // namespace privml::twopc
