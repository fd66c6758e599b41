// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/millionaires.h"

#include "base/error.h"
#include "twopc/compare/comparison.h"

namespace privml::twopc {
namespace {

void check_size(std::span<const u64> x, std::span<const u8> out) {
  expect(x.size() == out.size(), "millionaires: outputs must be as long as x");
}

}  // namespace

void millionaires(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> greater) {
  check_size(x, greater);
  compare_in_chunks(party, {bits}, x, 0, {greater, {}, {}});
}

void cost_millionaires(ot::CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits}, n);
}

}  // namespace privml::twopc
