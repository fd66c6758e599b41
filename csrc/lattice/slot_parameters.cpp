// SPDX-License-Identifier: Apache-2.0
#include "lattice/slot_parameters.h"

#include <cmath>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr double kLargestCoefficient = 0.51;  // of a transform's results, over the prime

}  // namespace

WideChoice choose_slots(const SlotSet& set, int prime) {
  expect(prime >= 0 && prime < kMostSlotPrimes, "lattice: the set has no such prime");
  const WideSet modulus{set.ring, 3, {set.messages[prime], set.others[0], set.others[1]}, 0};
  const int bits = set.message_bits();
  const double largest = kLargestCoefficient * std::exp2(bits);
  const double squares = static_cast<double>(set.ring.n) * largest * largest;
  const auto choice = choose_wide(modulus, {bits, squares});
  expect(choice.has_value(), "lattice: the set does not serve");
  return *choice;
}

}  // namespace privml::lattice
