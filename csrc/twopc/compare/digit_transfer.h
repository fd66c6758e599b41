// SPDX-License-Identifier: Apache-2.0
// The leaves of a comparison: one 1-of-2^m OT per digit.
//
// Functionality  the sender holds s, the chooser c; per digit XOR shares of [s > c] and [s = c], as
//                the plan asks.
// Method         correlation b of a digit is imposed on bit b of the chooser's digit. The sender
//                cuts 2^m (or twice as many) bits from H(q_b) and from H(q_b ^ delta): slot j of
//                the message is masked by the b-th pads of j's bits, so that every slot of every
//                message has its own pad bits and a correlation costs two hashes. The sender's
//                shares are what makes slot 0 zero, so that it need not be sent.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), Algorithm 1; the OT of Kolesnikov and
//                Kumaresan (Crypto 2013) from correlated OT bit by bit.
// Leakage        none. Assumption: correlation-robust hash.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/compare/comparison_plan.h"

namespace privml::twopc {

// Planes of the digits' states: greater[d * stride + i], equal[d * stride + i], 0/1 per byte; a
// plane that the plan does not ask for is left alone.
struct DigitPlanes {
  u8* greater;
  u8* equal;
  i64 stride;
};

// First flight: the chooser writes its masked choices, and leaves its pads in the planes.
void choose_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> chooser,
                   DigitPlanes planes);
// Second flight: the sender reads them and writes its messages; its planes are complete.
void send_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> sender,
                 DigitPlanes planes);
// The chooser reads the messages; its planes are complete.
void receive_digits(ot::Party& party, const ComparisonPlan& plan, std::span<const u64> chooser,
                    DigitPlanes planes);

i64 digit_choice_bytes(const ComparisonPlan& plan, i64 n);
i64 digit_message_bytes(const ComparisonPlan& plan, i64 n);
// Correlations per instance.
i64 digit_correlations(const ComparisonPlan& plan);

}  // namespace privml::twopc
