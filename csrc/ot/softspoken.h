// SPDX-License-Identifier: Apache-2.0
// OT extension: random correlated OTs from 128 base OTs (Roy, "SoftSpokenOT", Crypto 2022, sections
// 3 and 4).
//
// Functionality  Rcot (rcot.h). The offset has 127 random bits; its lowest is 1.
// Method         delta is cut into ceil(128 / k) elements of F_{2^k}. Each gives a VOLE over
//                F_{2^k} whose vector u has bits: the receiver of the correlated OT expands all 2^k
//                seeds of a punctured tree (ggm.h), the sender all but the one named by its
//                element. The receiver sends u_i ^ u_0 for i > 0, so that all elements share u_0
//                (repetition code), whose bits are the choices; the rows are transposed to blocks.
//                k = 1 is IKNP.
// Assumption     AES-128 in counter mode as pseudo-random generator. Secure against semi-honest
//                parties.
// Cost           (ceil(128/k) - 1) bits per correlation from receiver to sender; about 2^k / k AES
//                calls each.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "net/channel.h"
#include "ot/rcot.h"

namespace privml {

inline constexpr int kSoftSpokenMaxDegree = 8;

// The choices with which the sender of the correlated OT (offset delta, lowest bit 1) enters the
// 128 base OTs.
std::vector<u8> softspoken_base_choices(Block delta, int k);

// Reads the seeds' message; keys: what the base OTs gave for those choices.
std::unique_ptr<Rcot> make_softspoken_sender(Channel& channel, int k, Block delta,
                                             const std::vector<Block>& keys);
// Writes the seeds' message (two blocks per base OT); keys: both keys of each base OT. `root` is a
// fresh random block.
std::unique_ptr<Rcot> make_softspoken_receiver(Channel& channel, int k, Block root,
                                               const std::vector<std::array<Block, 2>>& keys);

inline constexpr i64 kSoftSpokenSeedBytes = 2 * 128 * 16;

RcotCost softspoken_cost(int k);

}  // namespace privml
