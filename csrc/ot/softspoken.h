// SPDX-License-Identifier: Apache-2.0
// OT extension: random correlated OTs from 128 base OTs (Roy, "SoftSpokenOT", Crypto 2022, sections
// 3 to 5).
//
// Functionality  Rcot (rcot.h). The offset has 127 random bits; its lowest is 1.
// Method         delta is cut into ceil(128 / k) elements of F_{2^k}. Each gives a VOLE over
//                F_{2^k} whose vector u has bits: the receiver of the correlated OT expands all 2^k
//                seeds of a punctured tree (ggm.h), the sender all but the one named by its
//                element. The receiver sends u_i ^ u_0 for i > 0, so that all elements share u_0
//                (repetition code), whose bits are the choices; the rows are transposed to blocks.
//                k = 1 is IKNP.
// Malicious      on request, also against dishonest parties: the trees come with proofs (ggm.h) and
//                every extension ends with a consistency check (softspoken_check.h, which states
//                soundness and source). A dishonest sender sends nothing after the base OTs, which
//                are secure against it. A proof that fails ends in SecurityAbort; nothing of that
//                extension is handed out and the object refuses to go on.
//                A dishonest receiver picks its seeds and could make rows equal, so that two
//                correlations had the same pads, and differences of what the sender hides with them
//                came to light. So both sides add public random blocks to q and t, from a hash of
//                the seeds' message: equal ones then take 2^127 trials for a pair.
// Leakage        semi-honest: none. Malicious: a dishonest receiver may guess parts of delta, by
//                its trees or its extensions; it learns g bits with probability 2^-g and causes a
//                SecurityAbort otherwise.
// Assumption     AES-128 in counter mode as pseudo-random generator; for malicious security also
//                AES-128 as ideal cipher and BLAKE2b as random oracle.
// Cost           (ceil(128/k) - 1) bits per correlation from receiver to sender; about 2^k / k AES
//                calls each. Malicious: for each extension 128 hiding columns and 48 bytes more,
//                one carry-less product of 128 bits per correlation and a hash of the message; 64
//                bytes per element at set-up.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "net/channel.h"
#include "ot/rcot.h"
#include "ot/softspoken_rows.h"

namespace privml::ot {

struct SoftSpokenSecurity {
  bool malicious = false;
  std::array<u8, 32> context{};  // names session and direction; both parties pass the same
};

// The choices with which the sender of the correlated OT (offset delta, lowest bit 1) enters the
// 128 base OTs.
WipedVector<u8> softspoken_base_choices(crypto::Block delta, int k);

// Reads the seeds' message; keys: what the base OTs gave for those choices. Throws SecurityAbort
// where a tree's proof fails.
std::unique_ptr<Rcot> make_softspoken_sender(net::Channel& channel, int k, crypto::Block delta,
                                             std::span<const crypto::Block> keys,
                                             const SoftSpokenSecurity& security = {});
// Writes the seeds' message; keys: both keys of each base OT. `root` is a fresh random block.
std::unique_ptr<Rcot> make_softspoken_receiver(net::Channel& channel, int k, crypto::Block root,
                                               std::span<const std::array<crypto::Block, 2>> keys,
                                               const SoftSpokenSecurity& security = {});

// The same with the root of every element's tree, which a dishonest receiver chooses at will.
std::unique_ptr<Rcot> make_softspoken_receiver(net::Channel& channel, int k,
                                               std::span<const crypto::Block> roots,
                                               std::span<const std::array<crypto::Block, 2>> keys,
                                               const SoftSpokenSecurity& security);

// Two blocks per base OT; with malicious security a proof per element.
i64 softspoken_seed_bytes(int k, bool malicious);

RcotCost softspoken_cost(int k, bool malicious = false);

}  // namespace privml::ot
