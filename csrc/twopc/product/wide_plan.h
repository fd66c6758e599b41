// SPDX-License-Identifier: Apache-2.0
// Who encrypts what in products by lattice/wide_product.h, in what parameters, and what that costs:
// decided from public numbers alone, so that both parties decide alike.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lattice/wide_product.h"
#include "twopc/product/operand.h"

namespace privml::twopc {

// A batch of products x y mod 2^ell, x: rows x inner, y: inner x columns.
struct WideProduct {
  i64 batch = 1;
  MatrixShape shape;
  Operand x, y;
  int ell = 64;
  // The result has one bit more, in which noise is, and is not to be opened; see wide_matmul.h.
  bool keeps_last_bit = false;
  // Nanoseconds that a byte takes, against which work is weighed; without it bytes count alone, and
  // columns are multiplied one by one.
  std::optional<i64> byte_price = 1000;
};

// The product of one party's share of a factor, which that party encrypts, with the other party's
// share of the other factor; or, if it is turned, of the transposed factors.
struct WideTerm {
  bool turned = false;
  lattice::WideShape shape;
};

// Keys of one owner in one parameter set, as far as both parties know them.
struct WideKeyState {
  bool made = false;
  i64 generation = 0;  // earlier keys, whose products are used up
  i64 products = 0;
  lattice::SwitchingLevels levels;
};

using WideKeyStates = std::array<WideKeyState, lattice::kWideSets.size()>;

// What one party encrypts; nothing if there are no terms.
struct WideSide {
  size_t set = 0;
  lattice::WideChoice choice;
  std::vector<WideTerm> terms;
  unsigned new_levels = 0;  // whose keys come with it, beside the key if that is not made
  i64 key_bytes = 0;        // of these
  i64 upload_bytes = 0;     // of the terms
  i64 answer_bytes = 0;     // from the other party
};

struct WidePlan {
  std::array<WideSide, 2> sides;  // by the party that encrypts
  double log2_failure = 0;        // of a value of the result
};

// The plan of the least price, that of bytes and work, of which bytes of keys count for a part,
// since they serve further products. Who encrypts, and so what correlations are drawn, does not
// depend on keys that are there; parameters and levels do. None if no parameters serve, if one
// party knows both factors, and for empty and very large products.
std::optional<WidePlan> plan_wide(const WideProduct& product,
                                  const std::array<WideKeyStates, 2>& keys);

// Plans that were made, for sessions whose products come again.
class WidePlans {
 public:
  const std::optional<WidePlan>& of(const WideProduct& product,
                                    const std::array<WideKeyStates, 2>& keys);

 private:
  std::map<std::vector<i64>, std::optional<WidePlan>> made_;
};

// Work of both parties for a side, in nanoseconds of one core.
double work_of(const WideSide& side, lattice::SwitchingLevels levels);

}  // namespace privml::twopc
