// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/slot_product.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "twopc/product/agreement.h"
#include "twopc/product/modulus.h"

namespace privml::twopc {
namespace {

using lattice::kSlotSets;
using lattice::WideChoice;

constexpr std::string_view kPurpose = "products place by place";
constexpr i64 kBitsOfPlace = 40;        // 100 ns of both parties, as kComputingBits
constexpr unsigned kAgreed = 1U << 31;  // of CostMeter::slot_keys

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

lattice::Digest digest_of(const SlotKeys& keys, int owner, const SlotPlan& plan, int prime) {
  const std::array<u8, 2> label{static_cast<u8>(plan.set), static_cast<u8>(prime)};
  return lattice::digest_of({owner, {kSlotSets[plan.set].ring}, {}, label}, keys.digest, {});
}

// Instances that an owner of keys chooses, of n.
i64 chosen_by(int owner, i64 n) { return owner == 0 ? n - first_half(n) : first_half(n); }

struct Sizes {
  i64 key, upload, answer;
};
Sizes sizes_of(const WideChoice& choice) {
  return {lattice::slot_key_bytes(choice), lattice::slot_upload_bytes(choice),
          lattice::slot_answer_bytes(choice)};
}

u64 prime_of(const SlotPlan& plan, int prime) { return kSlotSets[plan.set].messages[prime]; }

// The product t of a plan's primes.
u128 modulus_of(const SlotPlan& plan) {
  u128 out = 1;
  for (int i = 0; i < plan.primes; ++i) out *= prime_of(plan, i);
  return out;
}

u64 dropped(u128 word, int bits) {
  return static_cast<u64>((word + (bits > 0 ? u128{1} << (bits - 1) : 0)) >> bits);
}

}  // namespace

std::optional<SlotPlan> plan_slots(const SlotShape& shape, i64 n) {
  std::optional<SlotPlan> best;
  i64 fewest = 0;
  for (int set = 0; set < std::ssize(kSlotSets); ++set)
    for (int primes = 1; primes <= lattice::kMostSlotPrimes; ++primes) {
      const lattice::SlotSet& own = kSlotSets[set];
      // Primes are within a quarter of a power of two.
      if (shape.factor_bits + shape.value_bits > primes * own.message_bits() - 2) continue;
      const Sizes sizes = sizes_of(lattice::choose_slots(own, 0));
      const i64 polynomials = ceil_div(first_half(n), own.ring.n) + ceil_div(n / 2, own.ring.n);
      const i64 carries = packed_bytes(own.ring.n, own.message_bits() + 1);
      const i64 bytes = primes * polynomials * (sizes.upload + sizes.answer + carries);
      if (best && bytes >= fewest) continue;
      best = {set, primes};
      fewest = bytes;
    }
  return best;
}

i64 slot_work(const SlotShape& shape, i64 n) {
  const auto plan = plan_slots(shape, n);
  expect(plan.has_value(), "slot products: no parameters hold these numbers");
  const i64 degree = kSlotSets[plan->set].ring.n;
  return plan->primes * (ceil_div(first_half(n), degree) + ceil_div(n / 2, degree)) * degree *
         kBitsOfPlace;
}

SlotProducts::SlotProducts(ot::Party& party, const SlotShape& shape, i64 n)
    : party_(party), shape_(shape), count_(n), part_(halves(party.rank, n)) {
  const auto plan = plan_slots(shape, n);
  expect(plan.has_value() && shape.out_bits() >= 1 && shape.out_bits() <= 64 && shape.dropped >= 0,
         "slot products: no parameters hold these numbers");
  plan_ = *plan;
  n_ = kSlotSets[plan_.set].ring.n;
  primes_.resize(plan_.primes);
  for (int i = 0; i < plan_.primes; ++i)
    choices_.push_back(lattice::choose_slots(kSlotSets[plan_.set], i));
  if (party.slot_keys) return;
  const lattice::Digest digest = agree(party, {0, {}, {}, bytes_of(kPurpose)});
  party.slot_keys = std::make_shared<SlotKeys>();
  party.slot_keys->digest = digest;
}

SlotKeyPair& SlotProducts::pair(int prime) const {
  return party_.slot_keys->pairs[plan_.set][prime];
}

i64 SlotProducts::ciphertexts_of(int owner) const { return ceil_div(chosen_by(owner, count_), n_); }

void SlotProducts::write_factors(std::span<const u64> factors) {
  expect(std::ssize(factors) == part_.receive_count, "slot products: lengths differ");
  for (int i = 0; i < plan_.primes; ++i) {
    SlotKeyPair& keys = pair(i);
    const Sizes sizes = sizes_of(choices_[i]);
    std::vector<u8> wire;
    if (!keys.mine) {
      const auto digest = digest_of(*party_.slot_keys, party_.rank, plan_, i);
      keys.mine = std::make_unique<lattice::SlotKeyOwner>(choices_[i], digest, party_.prg);
      wire.resize(sizes.key);
      keys.mine->write_key(wire);
      party_.channel.write(wire);
    }
    wire.resize(sizes.upload);
    const Modulus modulus(prime_of(plan_, i));
    WipedVector<u64> residues;
    for (i64 begin = 0; begin < std::ssize(factors); begin += n_) {
      residues.resize(std::min(n_, std::ssize(factors) - begin));
      for (size_t k = 0; k < residues.size(); ++k) residues[k] = modulus.of(factors[begin + k]);
      keys.mine->write_upload(keys.uploads[party_.rank]++, residues, wire);
      party_.channel.write(wire);
    }
  }
}

void SlotProducts::write_answers(std::span<const u64> values) {
  expect(std::ssize(values) == part_.send_count, "slot products: lengths differ");
  const int peer = 1 - party_.rank;
  for (int i = 0; i < plan_.primes; ++i) {
    SlotKeyPair& keys = pair(i);
    const Sizes sizes = sizes_of(choices_[i]);
    std::vector<u8> wire, answer(sizes.answer);
    if (!keys.theirs) {
      const auto digest = digest_of(*party_.slot_keys, peer, plan_, i);
      wire.resize(sizes.key);
      party_.channel.read(wire);
      keys.theirs = std::make_unique<lattice::SlotEvaluator>(choices_[i], digest, wire, party_.prg);
    }
    wire.resize(sizes.upload);
    const Modulus modulus(prime_of(plan_, i));
    primes_[i].shares.resize((ciphertexts_of(0) + ciphertexts_of(1)) * n_);
    u64* shares = primes_[i].shares.data() + first_of(peer);
    WipedVector<u64> residues;
    for (i64 begin = 0; begin < std::ssize(values); begin += n_, shares += n_) {
      residues.resize(std::min(n_, std::ssize(values) - begin));
      for (size_t k = 0; k < residues.size(); ++k) residues[k] = modulus.of(values[begin + k]);
      party_.channel.read(wire);
      const auto phases = keys.theirs->answer(keys.uploads[peer]++, wire, residues, answer);
      party_.channel.write(answer);
      // The owner adds what is added.
      std::ranges::copy(lattice::slot_shares(phases, modulus.value(), false), shares);
    }
  }
}

void SlotProducts::write_carries() {
  for (int i = 0; i < plan_.primes; ++i) {
    std::vector<u8> wire(sizes_of(choices_[i]).answer);
    OfPrime& own = primes_[i];
    u64* shares = own.shares.data() + first_of(party_.rank);
    for (i64 k = 0; k < ciphertexts_of(party_.rank); ++k, shares += n_) {
      party_.channel.read(wire);
      const auto phases = pair(i).mine->read_answer(wire);
      std::ranges::copy(lattice::slot_shares(phases, prime_of(plan_, i), true), shares);
    }
    WipedVector<u8> last(own.shares.size());
    for (size_t k = 0; k < last.size(); ++k) {
      last[k] = own.shares[k] & 1;
      own.shares[k] >>= 1;
    }
    write_modular_product(party_, last, prime_of(plan_, i), own.carry);
  }
}

// Shares modulo t of the products, by instance.
void SlotProducts::join_primes() {
  sums_.resize(count_);
  const Modulus last(prime_of(plan_, plan_.primes - 1));
  const u64 first = prime_of(plan_, 0), inverse = last.inverse(first);
  const auto sum = [&](i64 at) -> u128 {
    const u64 one = primes_[0].shares[at];
    if (plan_.primes == 1) return one;
    const u64 difference = last.difference(primes_[1].shares[at], last.of(one));
    return one + u128{first} * last.product(difference, inverse);
  };
  const int peer = 1 - party_.rank;
  for (i64 i = 0; i < part_.receive_count; ++i)
    sums_[part_.receive_begin + i] = sum(first_of(party_.rank) + i);
  for (i64 i = 0; i < part_.send_count; ++i) sums_[part_.send_begin + i] = sum(first_of(peer) + i);
}

void SlotProducts::write_wraps() {
  for (int i = 0; i < plan_.primes; ++i) {
    OfPrime& own = primes_[i];
    const Modulus modulus(prime_of(plan_, i));
    WipedVector<u64> carries(own.shares.size());
    read_modular_product(party_, own.carry, carries);
    for (size_t k = 0; k < carries.size(); ++k)
      own.shares[k] = modulus.sum(own.shares[k], carries[k]);
    const lattice::Slots& slots = pair(i).mine->slots();
    for (size_t k = 0; k < own.shares.size(); k += n_)
      slots.values(std::span(own.shares).subspan(k, n_));
  }
  join_primes();
  const u128 half = modulus_of(plan_) / 2;
  WipedVector<u8> above(count_);
  for (i64 i = 0; i < count_; ++i) above[i] = static_cast<u8>((half - sums_[i]) >> 127);
  write_private_product(party_, above, shape_.out_bits(), wraps_);
}

void SlotProducts::read(std::span<u64> out) {
  expect(std::ssize(out) == count_, "slot products: lengths differ");
  read_private_product(party_, wraps_, out);
  const u64 modulus = dropped(modulus_of(plan_), shape_.dropped);
  for (i64 i = 0; i < count_; ++i) {
    const u64 wraps = wraps_.own[i] - out[i];  // a + b - a b
    out[i] = (dropped(sums_[i], shape_.dropped) - wraps * modulus) & low_mask(shape_.out_bits());
  }
}

SlotFlights cost_slot_products(ot::CostMeter& meter, const SlotShape& shape, i64 n) {
  const auto plan = plan_slots(shape, n);
  expect(plan.has_value(), "slot products: no parameters hold these numbers");
  if ((meter.slot_keys & kAgreed) == 0) meter.exchange(kAgreementBytes, kAgreementBytes);
  meter.slot_keys |= kAgreed;
  const lattice::SlotSet& set = kSlotSets[plan->set];
  SlotFlights flights;
  std::array<i64, 2> polynomials{};
  for (const int owner : {0, 1}) polynomials[owner] = ceil_div(chosen_by(owner, n), set.ring.n);
  const i64 coefficients = (polynomials[0] + polynomials[1]) * set.ring.n;
  for (int i = 0; i < plan->primes; ++i) {
    const Sizes sizes = sizes_of(lattice::choose_slots(set, i));
    const unsigned made = 1U << (plan->set * lattice::kMostSlotPrimes + i);
    const i64 key = (meter.slot_keys & made) == 0 ? sizes.key : 0;
    meter.slot_keys |= made;
    flights.factors = flights.factors + Flight{key + polynomials[0] * sizes.upload,
                                               key + polynomials[1] * sizes.upload};
    flights.answers =
        flights.answers + Flight{polynomials[1] * sizes.answer, polynomials[0] * sizes.answer};
    flights.carries = flights.carries + modular_product_flight(coefficients, set.messages[i]);
    cost_draw_private_product(meter, coefficients);
  }
  flights.wraps = private_product_flight(n, shape.out_bits());
  cost_draw_private_product(meter, n);
  return flights;
}

}  // namespace privml::twopc
