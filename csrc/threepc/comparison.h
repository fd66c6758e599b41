// SPDX-License-Identifier: Apache-2.0
// What parties compute between the messages of a comparison from dealt tables, on planes: one bit
// of every element, eight elements to a byte. The protocol, its leakage and source are in
// privml/engines/threepc/comparison.py, the plans in comparison_plan.py.
//
// A level of k blocks, the most significant first, is 2 k - 1 planes: g (greater) of all blocks,
// then p (equal) of all but the last. Arrays are the caller's and dense; results never overlap
// operands. Every function throws InvalidArgument for a plan out of range before it writes.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace privml::threepc {

constexpr int kLargestBlock = 6;  // bits
constexpr int kLargestNode = 6;   // blocks

struct ComparisonPlan {
  std::vector<int> blocks;               // bits of each
  std::vector<std::vector<int>> levels;  // for each level, how many blocks each of its nodes joins
};

// Planes that are dealt once for each mask: the blocks' tables and the top bit.
i64 table_planes(std::span<const int> blocks);
// Planes of products of masks that a level needs.
i64 product_planes(std::span<const int> nodes);

// Party 2: the tables of r and its top bit, table_planes * size bytes; then for each level the
// products of its masks, product_planes * several * size bytes. r: sum(blocks) + 1 planes of `size`
// bytes, the lowest bit first; masks: the levels' planes of several * size bytes.
void deal_comparison(const ComparisonPlan& plan, const u8* r, const u8* masks, i64 several,
                     i64 size, u8* out);

// Parties 0 and 1: shares of the first level. m: sum(blocks) planes of several * size bytes, the
// lowest bit first; table: this party's part of what was dealt, planes of `size` bytes.
void compare_blocks(int party, std::span<const int> blocks, const u8* m, const u8* table,
                    i64 several, i64 size, u8* out);

// Parties 0 and 1: shares of the next level, from what was opened of a level, and this party's
// parts of its masks and of their products; all planes have `size` bytes.
void join_blocks(int party, std::span<const int> nodes, const u8* opened, const u8* masks,
                 const u8* products, i64 size, u8* out);

}  // namespace privml::threepc
