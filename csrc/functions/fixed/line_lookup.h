// SPDX-License-Identifier: Apache-2.0
// A line whose constant and slope a table gives by the high part of a number, at its low part.
//
// Functionality  split_lookup.h's, or folded_lookup.h's of a signed number, and value = the
//                linear_words of word_product.h, of two of the words found and of the low part or
//                its negative.
// Method         the product's number, the low part, is there a flight before its words: what that
//                part needs of prepared_line.h travels with the opening of the places. Numbers of
//                more than one chunk, and forms of the lookup that open no places: linear_words.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           the sum of both, depth one less.
// Source         those of the two.
#pragma once

#include <functional>
#include <vector>

#include "functions/evaluator/evaluator.h"
#include "twopc/lookup/folded_lookup.h"

namespace privml::fixed {

// Where the words stand in those that are looked up together.
struct PlacedWord {
  int table = 0, offset = 0;
};

struct LineLookup {
  int index_bits, place_bits, low_bits;  // low_bits >= line.ell
  std::vector<int> widths;               // of the tables' entries
  twopc::LinearShape line;
  PlacedWord constant, factor;
  bool negative = false;  // the low part counts negative
  int folded_bits = 0;    // of a signed number; 0: split_lookup.h
  bool apart = false;     // no flight is shared

  twopc::SplitLookupShape split() const { return {index_bits, place_bits, low_bits, widths}; }
  twopc::FoldedLookupShape folded() const {
    return {folded_bits, index_bits, place_bits, low_bits, widths};
  }
};

struct LineFound {
  std::vector<functions::RingShares> words;  // by table
  functions::RingShares low, value;
  functions::RingShares high, positive;  // these of a signed number
  functions::BitShares nonnegative;
};

// tables() is called at a party. `vectors`: of index_bits, for as many numbers; made before.
LineFound line_lookup(functions::Evaluator& evaluator, const LineLookup& lookup,
                      const std::function<std::vector<std::vector<u64>>()>& tables,
                      const functions::RingShares& x, twopc::RandomOneHots* vectors = nullptr);

// Whether vectors that were made before would be used for n numbers.
bool takes_vectors(functions::Evaluator& evaluator, const LineLookup& lookup, i64 n);

}  // namespace privml::fixed
