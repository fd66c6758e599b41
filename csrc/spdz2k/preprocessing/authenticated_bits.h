// SPDX-License-Identifier: Apache-2.0
// Random bits of each party with MACs under the other's key part, from correlated OT.
//
// Functionality  party j gets random bits x_l, words v_l with lowest bit x_l, and MACs M_l; the
//                other party i gets K_l with M_l + K_l = alpha^i * v_l mod 2^s; both directions at
//                once. On request also the correlations behind: t_l = q_l ^ x_l * Delta^i.
// Method         the choice bits of the malicious correlated OT are the bits: TinyOT's
//                authenticated bits. Party i sends y_l = alpha^i + H(q_l ^ Delta) - H(q_l); party j
//                has M_l = x_l * y_l - H(t_l), party i K_l = H(q_l). So a bit enters [.]_2 as what
//                it is: the second, separately authenticated copy of Fig. 2 and its comparison with
//                the first are not needed, and a bit costs s bits in place of s * s.
//                What is left to a cheater are wrong y_l, which change MACs of bits that are 1. The
//                check (bit_check.h) finds them, but one that guesses t bits right passes with
//                probability 2^-t and then knows them. Therefore 2s further bits are made, and
//                after the check v_l becomes v_l + sum_m T_lm v_m over them with random public T;
//                MACs, keys and correlations likewise.
// Leakage        none: given the cheater's view the bits before lost at most
//                log2(1 / Pr[pass]) of their entropy; (I | T) is a universal hash that drops 2s
//                bits, so by the leftover hash lemma the new bits are within 2^-s of uniform
//                (Impagliazzo, Levin, Luby, 1989), the probability of passing included.
// Assumption     malicious correlated OT (rcot.h), the hash is correlation robust.
// Cost           n + 2s correlations and as many words of s bits, each way; one check; 64 bytes.
// Source         Nielsen et al., "TinyOT" (Crypto 2012); Damgard et al., "New primitives for
//                actively-secure MPC over rings" (S&P 2019), section III-B.
#pragma once

#include "ot/party.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

template <class R>
struct AuthenticatedBits {
  using BitWord = typename R::BitWord;
  WipedVector<BitWord> value, mac;       // of this party's bits
  WipedVector<BitWord> key;              // for the other's
  WipedVector<crypto::Block> own, peer;  // t and q; empty unless asked for
  i64 size() const { return std::ssize(value); }
};

enum class Correlations { dropped, kept };

// Throws SecurityAbort if the check fails. Both parties' part of the OT layer must be set up for
// malicious peers.
template <class R>
AuthenticatedBits<R> authenticate_random_bits(Session<R>& session, ot::Party& party, i64 n,
                                              Correlations correlations);
template <class R>
void cost_authenticate_random_bits(CostMeter& meter, i64 n);

// Shares of the exclusive or of both parties' bits.
template <class R>
void shares_of_both(const Session<R>& session, const AuthenticatedBits<R>& bits, BitSpan<R> out);
// Shares of bits first .. first + out.size() - 1 of `owner`.
template <class R>
void shares_of_owner(const Session<R>& session, const AuthenticatedBits<R>& bits, int owner,
                     i64 first, BitSpan<R> out);

}  // namespace privml::spdz2k
