// SPDX-License-Identifier: Apache-2.0
// The carry out of the low bits of a shared sum in two messages, straight into a ring.
//
// Functionality  x: additive shares x0, x1; out: additive shares in Z_{2^width} of
//                [x0 + x1 >= 2^bits] for their low `bits` bits.
// Method         in digits, one 1-of-2^d OT each, in place of a comparison whose result is
//                converted: all choices are sent at once, and all messages. That of a digit is its
//                carry under a random flip, with one of two random pads; a message of the next
//                digit holds what it would be for both carries, each under its pad. The last one
//                holds the carry less a mask. Each party sends for half of the elements.
// Leakage        none beyond length and widths: the chooser sees flipped carries and one pad of
//                each two. Assumption: correlated OT, correlation-robust hash.
// Cost           a correlation per bit; per digit of d bits 2^d messages of twice about `width`
//                bits, of the lowest one half as much; depth 2.
// Source         the tables of SiRNN (Rathee et al., S&P 2021), section III-E, chained by pads as
//                in Yao's circuits.
#pragma once

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// Whether it is the cheaper form; over fast links it never is.
bool prefers_table_carry(ComparisonPrices prices, int bits, int width);
template <class Planner>
bool prefers_table_carry(const Planner& planner, i64 n, int bits, int width) {
  return prefers_table_carry(comparison_prices(planner, n), bits, width);
}

// One digit: `value` bits are told for one carry into it, and for two if it is not the lowest.
struct CarryDigit {
  int offset, bits, value;
  int width() const { return offset == 0 ? value : 2 * value; }
};
// The digits that take fewest bits with correlations of `correlation_bits`, of all that fit words;
// none if none does.
std::vector<CarryDigit> carry_digits(int bits, int width, double correlation_bits);

// What stands between the flights, so that other messages can share them.
struct TableCarry {
  int width = 0;
  std::vector<CarryDigit> digits;
  std::vector<std::vector<u8>> numbers;  // by digit
  std::vector<WipedVector<crypto::Block>> chosen;
};

// The first flight; then the peer's is read and the second one written and read.
void begin_table_carry(ot::Party& party, std::span<const u64> x, int bits, int width,
                       TableCarry& state);
void finish_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out);
// The same in two halves, between which others write theirs in the second flight.
void send_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out);
void receive_table_carry(ot::Party& party, TableCarry& state, std::span<u64> out);
// All of it; `beside` shares the first flight and `beside_messages` the second one.
void cost_table_carry(ot::CostMeter& meter, i64 n, int bits, int width, Flight beside = {},
                      Flight beside_messages = {});

}  // namespace privml::twopc
