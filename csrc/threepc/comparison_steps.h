// SPDX-License-Identifier: Apache-2.0
// One comparison from dealt tables at party 0 or 1, from message to message: what comparison.h
// computes on planes, with the words before it and the bits after it. The protocol, its leakage and
// source are in privml/engines/threepc/comparison.py.
#pragma once

#include <span>
#include <vector>

#include "threepc/comparison.h"

namespace privml::threepc {

// `several` values under each of `count` masks; planes have `size` bytes for one of them.
struct ComparisonForm {
  ComparisonPlan plan;
  i64 several, count, size;

  ComparisonForm(ComparisonPlan plan, i64 several, i64 count);
  int bits() const;           // of a number, its top bit included
  i64 opened_planes() const;  // of all messages
  i64 dealt_bytes() const;
  i64 mask_bytes() const;  // of what is opened
};

class ComparisonSteps {
 public:
  // masks: this party's parts of the masks of all that is opened, mask_bytes() in the order of the
  // messages; dealt: its part of what was dealt, dealt_bytes(). Both stay the caller's and outlive
  // this. m: several * count words.
  ComparisonSteps(int party, ComparisonForm form, const u8* masks, const u8* dealt);
  ~ComparisonSteps();
  ComparisonSteps(const ComparisonSteps&) = delete;
  ComparisonSteps& operator=(const ComparisonSteps&) = delete;

  // This party's message, until the next call: the first one, and the one after that of the peer,
  // which is as long. Throws InvalidArgument for a message of another length, or one too many.
  std::span<const u8> begin(const u64* m, int threads);
  std::span<const u8> join(std::span<const u8> received);
  // After the last message, several * count bits each: the public one and this party's mask of it.
  void finish(std::span<const u8> received, u8* known, u8* mask);

 private:
  void mask_message();
  void open(std::span<const u8> received);

  int party_;
  ComparisonForm form_;
  const u8 *masks_, *dealt_;
  std::size_t level_ = 0;
  i64 products_;                // where the level's dealt products begin
  std::vector<u8> top_, sent_;  // the top bits of m; the level that is opened
  std::vector<u8> next_;
};

}  // namespace privml::threepc
