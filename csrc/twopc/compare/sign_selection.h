// SPDX-License-Identifier: Apache-2.0
// Values or zero by the sign of a shared number: what ReLU and maximum have in common.
//
// Functionality  nonnegative = XOR shares of [sign >= 0]; out = values if it is 1, else 0, with
//                `length` values under each sign; products of other bits with `nonnegative` as
//                asked.
// Method         the selection is prepared for a random bit while the comparison runs; its opening
//                and the products share the last exchange (random_selection.h, bit_products.h).
#pragma once

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/select/bit_products.h"

namespace privml::twopc {

struct SignSelection {
  std::span<const u64> sign;    // n words of `bits` bits
  std::span<const u64> values;  // n * length words of `bits` bits
  i64 length = 1;
  int bits = 64;
  std::span<u64> out;                  // n * length, may be `values`
  std::span<u8> nonnegative;           // n
  std::vector<PlaneProduct> products;  // whose common operands lie in `nonnegative`
  i64 product_n = 0;                   // instances of each product
};

// One chunk. All spans must be of the sizes stated.
void select_by_sign(ot::Party& party, const SignSelection& task);
void cost_select_by_sign(ot::CostMeter& meter, i64 n, i64 length, int bits,
                         std::span<const int> product_widths, i64 product_n);

}  // namespace privml::twopc
