// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/division.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/buffer.h"
#include "base/divisor.h"
#include "base/error.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/lookup.h"
#include "twopc/session/chunk.h"
#include "twopc/width/bounded.h"
#include "twopc/width/conversion.h"
#include "twopc/width/signed_wrap.h"

namespace privml::twopc {
namespace {

constexpr int kIndexBits = 2, kEntries = 4, kPlaces = 3;
constexpr int kSender = 1;

struct Division {
  int bits;
  u64 bound;
  PublicDivisor divisor;
  int remainder_bits() const { return static_cast<int>(std::bit_width(divisor.divisor() - 1)) + 1; }
  bool one_transfer() const { return bits + remainder_bits() <= 64; }
};

using Quotient = PublicDivisor::Result;

// 2^bits * j, divided.
Quotient divide_turns(const Division& task, int j) {
  const u128 number = u128{static_cast<u64>(j)} << task.bits;
  const u64 divisor = task.divisor.divisor();
  return {static_cast<u64>(number / divisor), static_cast<u64>(number % divisor)};
}

// Quotient and remainder of the number that has `x`, less the one that has `taken`; the remainder
// in 0..divisor-1, the quotient modulo 2^64.
Quotient subtract(const Quotient& x, const Quotient& taken, u64 divisor) {
  const u64 borrow = x.remainder < taken.remainder;
  return {x.quotient - taken.quotient - borrow,
          x.remainder - taken.remainder + ((u64{0} - borrow) & divisor)};
}

// Party 1: messages in the order of party 0's share of the place, minus this party's share.
void send_quotients(ot::Party& party, const Division& task, std::span<const u64> x,
                    std::span<const u64> place, std::span<u64> quotient, std::span<u64> remainder) {
  const i64 n = std::ssize(x);
  const int low = task.bits, high = task.remainder_bits();
  party.prg.fill_ring(quotient, low);
  party.prg.fill_ring(remainder, high);
  std::array<Quotient, kPlaces> turns;
  for (int j = 0; j < kPlaces; ++j) turns[j] = divide_turns(task, j);
  AlignedVector<u64> quotients(n * kEntries), remainders(n * kEntries);
  for (i64 i = 0; i < n; ++i) {
    const Quotient own = task.divisor.divide(x[i] & low_mask(low));
    std::array<Quotient, kPlaces> entries;
    for (int j = 0; j < kPlaces; ++j) {
      entries[j] = subtract(own, turns[j], task.divisor.divisor());
    }
    for (int j = 0; j < kEntries; ++j) {
      // The place is as secret as the share, so all entries are touched. One of 3 does not occur.
      const u64 wrap = (place[i] + static_cast<u64>(j)) % kEntries;
      u64 q = 0, r = 0;
      for (u64 k = 0; k < kPlaces; ++k) {
        const u64 chosen = u64{0} - static_cast<u64>(wrap == k);
        q |= entries[k].quotient & chosen;
        r |= entries[k].remainder & chosen;
      }
      quotients[i * kEntries + j] = (q - quotient[i]) & low_mask(low);
      remainders[i * kEntries + j] = (r - remainder[i]) & low_mask(high);
    }
  }
  if (!task.one_transfer()) {
    transfer_one_of_n_send(party, quotients, kIndexBits, low);
    return transfer_one_of_n_send(party, remainders, kIndexBits, high);
  }
  for (std::size_t i = 0; i < quotients.size(); ++i) quotients[i] |= remainders[i] << low;
  transfer_one_of_n_send(party, quotients, kIndexBits, low + high);
}

void receive_quotients(ot::Party& party, const Division& task, std::span<const u64> place,
                       std::span<u64> quotient, std::span<u64> remainder) {
  const std::vector<u8> choices(place.begin(), place.end());
  const int low = task.bits, high = task.remainder_bits();
  if (!task.one_transfer()) {
    transfer_one_of_n_receive(party, choices, kIndexBits, low, quotient);
    return transfer_one_of_n_receive(party, choices, kIndexBits, high, remainder);
  }
  transfer_one_of_n_receive(party, choices, kIndexBits, low + high, quotient);
  for (std::size_t i = 0; i < quotient.size(); ++i) {
    remainder[i] = quotient[i] >> low;
    quotient[i] &= low_mask(low);
  }
}

void divide_chunk(ot::Party& party, const Division& task, std::span<const u64> x,
                  std::span<u64> out) {
  const i64 n = std::ssize(x);
  const int width = task.remainder_bits();
  const u64 mask = low_mask(task.bits);
  AlignedVector<u64> place(n), quotient(n), remainder(n), carry(n);
  signed_wrap(party, x, task.bits, task.bound, kIndexBits, place);
  if (party.rank == kSender) {
    send_quotients(party, task, x, place, quotient, remainder);
  } else {
    receive_quotients(party, task, place, quotient, remainder);
    for (i64 i = 0; i < n; ++i) {
      const Quotient own = task.divisor.divide(x[i] & mask);
      quotient[i] += own.quotient;
      remainder[i] = (remainder[i] + own.remainder - task.divisor.divisor()) & low_mask(width);
    }
  }
  // The remainders together reach the divisor where the sign is not set.
  std::vector<u8> reached(n);
  most_significant_bit(party, remainder, width, reached);
  if (party.rank == 0) {
    for (u8& bit : reached) bit ^= 1;
  }
  bits_to_ring(party, reached, task.bits, carry);
  for (i64 i = 0; i < n; ++i) out[i] = (quotient[i] + carry[i]) & mask;
}

void cost_divide_chunk(ot::CostMeter& meter, i64 n, const Division& task) {
  const int low = task.bits, high = task.remainder_bits();
  cost_signed_wrap(meter, n, low, task.bound, kIndexBits);
  if (task.one_transfer()) {
    cost_transfer_one_of_n(meter, kSender, n, kIndexBits, low + high);
  } else {
    cost_transfer_one_of_n(meter, kSender, n, kIndexBits, low);
    cost_transfer_one_of_n(meter, kSender, n, kIndexBits, high);
  }
  cost_most_significant_bit(meter, n, high);
  cost_bits_to_ring(meter, n, low);
}

Division checked(int bits, u64 bound, u64 divisor) {
  plan_signed_wrap(bits, bound);
  expect(divisor >= 1 && divisor <= low_mask(bits) >> 1,
         "divide_bounded: divisor must be in 1..2^(bits-1) - 1");
  return {bits, bound, PublicDivisor(divisor)};
}

int exponent(u64 divisor) { return static_cast<int>(std::bit_width(divisor)) - 1; }

}  // namespace

void divide_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, u64 divisor,
                    std::span<u64> out) {
  const Division task = checked(bits, bound, divisor);
  expect(x.size() == out.size(), "divide_bounded: out must be as long as x");
  if (std::has_single_bit(divisor)) {
    return truncate_bounded(party, x, bits, bound, exponent(divisor), out);
  }
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_divide_chunk(meter, n, task); },
      [&](i64 begin, i64 n) {
        divide_chunk(party, task, x.subspan(begin, n), out.subspan(begin, n));
      });
}

void cost_divide_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, u64 divisor) {
  const Division task = checked(bits, bound, divisor);
  if (std::has_single_bit(divisor)) {
    return cost_truncate_bounded(meter, n, bits, bound, exponent(divisor));
  }
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_divide_chunk(m, count, task); });
}

}  // namespace privml::twopc
