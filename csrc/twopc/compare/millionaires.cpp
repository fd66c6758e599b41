// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/millionaires.h"

#include "base/error.h"
#include "twopc/compare/comparison.h"

namespace privml {
namespace {

void check_size(std::span<const u64> x, std::span<const u8> out) {
  expect(x.size() == out.size(), "millionaires: outputs must be as long as x");
}

ComparisonShape split_shape(int bits, int split) {
  expect(split > 0, "millionaires_split: split must be in 1..bits-1");
  return {bits, split};
}

}  // namespace

void millionaires(Party& party, std::span<const u64> x, int bits, std::span<u8> greater) {
  check_size(x, greater);
  compare_in_chunks(party, {bits}, x, 0, {greater, {}, {}});
}

void cost_millionaires(CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits}, n);
}

void millionaires_with_equality(Party& party, std::span<const u64> x, int bits,
                                std::span<u8> greater, std::span<u8> equal) {
  check_size(x, greater);
  check_size(x, equal);
  compare_in_chunks(party, {bits, 0, true}, x, 0, {greater, equal, {}});
}

void cost_millionaires_with_equality(CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits, 0, true}, n);
}

void millionaires_split(Party& party, std::span<const u64> x, int bits, int split,
                        std::span<u8> low_greater, std::span<u8> greater) {
  check_size(x, low_greater);
  check_size(x, greater);
  compare_in_chunks(party, split_shape(bits, split), x, 0, {greater, {}, low_greater});
}

void cost_millionaires_split(CostMeter& meter, i64 n, int bits, int split) {
  cost_compare_in_chunks(meter, split_shape(bits, split), n);
}

}  // namespace privml
