// SPDX-License-Identifier: Apache-2.0
// Products of a number that one party knows and a number that the other one knows, by ciphertexts
// that multiply place by place.
//
// Functionality  for each instance the chooser (session/flight.h's halves) knows a factor below
//                2^factor_bits, the other party a value below 2^value_bits; shares in
//                Z_{2^(ring_bits - dropped)} of their product over 2^dropped, rounded: off by
//                kSlotError at most, and exact if nothing is dropped, but for the failures that
//                slot_parameters.h bounds.
// Method         products modulo one or two primes by lattice/slot_product.h, with the chooser's
//                key. The shares' last bit is dropped as in last_bit.h, modulo the prime, and
//                values at the places are local. Shares modulo the product t of the primes add up
//                to the product, which is below t / 2, or to it and t: the latter if one of them is
//                at least t / 2, which takes one AND.
// Leakage        none beyond length and widths. Assumption: lattice/slot_product.h; correlated OT,
//                correlation-robust hash.
// Cost           for each direction and prime ceil(instances / n) ciphertexts up and halves down; a
//                modular_product.h for each of their coefficients; a private_product.h of
//                ring_bits - dropped bits for each instance. Once a session and set, keys, and once
//                a session agreement.h. Depth 4; other messages can share the flights.
// Source         lattice/slot_product.h; SiRNN (Rathee et al., S&P 2021), section III, for carries
//                of numbers whose highest bit is known.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "lattice/slot_product.h"
#include "ot/cost.h"
#include "twopc/product/modular_product.h"
#include "twopc/product/private_product.h"

namespace privml::twopc {

// For each set of parameters and each of its primes the key that this party owns, and what it has
// of the peer's: a session's calls have them in common.
struct SlotKeyPair {
  std::unique_ptr<lattice::SlotKeyOwner> mine;
  std::unique_ptr<lattice::SlotEvaluator> theirs;
  std::array<i64, 2> uploads{};  // so far, by owner
};

struct SlotKeys {
  lattice::Digest digest{};  // of both parties' nonces
  std::array<std::array<SlotKeyPair, lattice::kMostSlotPrimes>, std::size(lattice::kSlotSets)>
      pairs{};
};

struct SlotShape {
  int factor_bits = 0, value_bits = 0;
  int ring_bits = 0, dropped = 0;
  int out_bits() const { return ring_bits - dropped; }
};
inline constexpr double kSlotError = 1.5;  // in units of 2^dropped

// A set of parameters, and how many of its primes are used.
struct SlotPlan {
  int set = 0, primes = 0;
};
// The one with the fewest bytes; none if none holds the products.
std::optional<SlotPlan> plan_slots(const SlotShape& shape, i64 n);

// What the work on polynomials is worth, in bits on the wire.
i64 slot_work(const SlotShape& shape, i64 n);

// The products of one chunk, message by message. Spans hold this party's numbers: of the instances
// that it chooses (receive_count of halves()), or of the others (send_count).
class SlotProducts {
 public:
  // Throws InvalidArgument if no set holds the products. Agrees with the peer if this is the first
  // call of a session.
  SlotProducts(ot::Party& party, const SlotShape& shape, i64 n);
  void write_factors(std::span<const u64> factors);
  // Reads the peer's factors.
  void write_answers(std::span<const u64> values);
  // Reads the peer's answers.
  void write_carries();
  // Reads the peer's carries.
  void write_wraps();
  void read(std::span<u64> out);

 private:
  struct OfPrime {
    WipedVector<u64> shares;  // of coefficients modulo 2 p: those of party 0's ciphertexts first
    ModularProduct carry;
  };
  i64 ciphertexts_of(int owner) const;
  i64 first_of(int owner) const { return owner == 0 ? 0 : ciphertexts_of(0) * n_; }
  SlotKeyPair& pair(int prime) const;
  void join_primes();

  ot::Party& party_;
  SlotShape shape_;
  i64 count_, n_;  // instances, coefficients
  Halves part_;
  SlotPlan plan_;
  std::vector<lattice::WideChoice> choices_;
  std::vector<OfPrime> primes_;
  WipedVector<u128> sums_;  // of this party's shares modulo t, by instance
  PrivateProduct wraps_;
};

// What each step writes. Books the agreement and what is drawn.
struct SlotFlights {
  Flight factors, answers, carries, wraps;
};
SlotFlights cost_slot_products(ot::CostMeter& meter, const SlotShape& shape, i64 n);

}  // namespace privml::twopc
