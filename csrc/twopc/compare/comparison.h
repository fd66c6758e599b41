// SPDX-License-Identifier: Apache-2.0
// The comparison in two halves, so that other messages can share its first flight. millionaires.h
// states functionality, source and cost.
#pragma once

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/select/bit_chains.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// What stands between the halves: this party's numbers and the states of the digits.
struct Comparison {
  ComparisonPlan plan;
  i64 n = 0;
  AlignedVector<u64> numbers;
  AlignedVector<u8> greater, equal;  // digit planes of n bytes
  ChainMasks masks;                  // of the joins of three, level by level
  enum class Stage { nothing, masks_written, masks_read } stage = Stage::nothing;
};

// Writes the choices of the leaves: the first flight. The numbers compared are the low bits of
// x[i] ^ flip.
void begin_comparison(ot::Party& party, const ComparisonShape& shape, std::span<const u64> x,
                      u64 flip, Comparison& state);
// What begin_comparison writes first, and its counterpart: for several comparisons in one flight,
// all of which are prepared before any begins, and read before any sends its leaves.
void prepare_comparison(ot::Party& party, const ComparisonShape& shape, i64 n, Comparison& state);
void read_masks(ot::Party& party, Comparison& state);
// Reads the first flight and does the rest.
void finish_comparison(ot::Party& party, Comparison& state);
// The same in parts, between which other messages go: the leaves, then levels 0, 1, ... of the
// tree, one exchange each.
struct PendingLevel {
  PendingProducts pairs;
  PendingChains chains;
};
void send_leaves(ot::Party& party, Comparison& state);
void receive_leaves(ot::Party& party, Comparison& state);
void write_level(ot::Party& party, Comparison& state, int level, PendingLevel& pending);
void read_level(ot::Party& party, Comparison& state, PendingLevel& pending);

// The carry of shares x0 + x1 is the comparison of x0 with ~x1: what party `rank` flips.
constexpr u64 carry_flip(int rank) { return rank == 0 ? 0 : ~u64{0}; }

// Results of a finished comparison: XOR shares of [x0 > x1], of [x0 = x1] (shape.equality) and of
// both for the low `split` bits.
std::span<const u8> greater_of(const Comparison& state);
std::span<const u8> equal_of(const Comparison& state);
std::span<const u8> low_greater_of(const Comparison& state);
std::span<const u8> low_equal_of(const Comparison& state);

// The first flight of begin_comparison, and all that finish_comparison sends after it.
Flight comparison_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
void cost_draw_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
void cost_finish_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
// Of the parts; the correlations of all levels are drawn apart, but for those of masks.
int comparison_levels(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
Flight leaves_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
Flight level_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n, int level);
void cost_draw_levels(ot::CostMeter& meter, const ComparisonShape& shape, i64 n);
void cost_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n);

// Whole comparisons, chunk by chunk; outputs that are empty are not wanted.
struct ComparisonResults {
  std::span<u8> greater;
  std::span<u8> equal;
  std::span<u8> low_greater;
};
void compare_in_chunks(ot::Party& party, const ComparisonShape& shape, std::span<const u64> x,
                       u64 flip, const ComparisonResults& results);
void cost_compare_in_chunks(ot::CostMeter& meter, const ComparisonShape& shape, i64 n);

}  // namespace privml::twopc
