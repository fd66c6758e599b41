// SPDX-License-Identifier: Apache-2.0
// Matrix products both factors of which are shared, or of any width up to the ring's, by
// lattice-based encryption (lattice/wide_product.h).
//
// Functionality  out = x y mod 2^ell as additive shares, exact, for a batch of products of one
//                shape; ell is 1 to 64. Factors are shared or known to a party, as in matmul.h.
//                If product.keeps_last_bit, for ell up to 63, out = 2 x y + e mod 2^(ell + 1) with
//                e = 0 or 1, for a truncation that follows: whatever e is, floor((2 v + e) /
//                2^(s + 1)) = floor(v / 2^s). e depends on noise, and shares are what ciphertexts
//                say: they must not be opened, nor sums of them, before an exact truncation by one
//                bit or more, which drops e and makes fresh shares.
// Method         x y = x_0 y_0 + x_0 y_1 + x_1 y_0 + x_1 y_1, of which the middle terms need
//                ciphertexts. In each, one party encrypts its share and the other one multiplies;
//                the plan (wide_plan.h) says who. Who multiplies keeps c0 of its answers and sends
//                c1: c0 at one party and c1 times the key at the other one are shares modulo 1 of
//                a term, and each party adds up its shares of all terms, whoever encrypts. It
//                rounds the sum down to ell + 1 bits, to which one party added 3/2 units of the
//                last one. As noise is below half a unit, the shares add up to 2 x y + e, and the
//                last bit is dropped exactly (last_bit.h).
// Leakage        none beyond shapes and formats. To who multiplies: uploads and keys are samples of
//                ring learning with errors. To who encrypts: c1 is hidden by an encryption of zero
//                that is fresh for each answer; nothing else of an answer is sent. Transfers make
//                the shares of the result fresh where the last bit is dropped.
// Assumption     lattice/wide_parameters.h; lattice/transcript.h; correlated OT,
//                correlation-robust hash. A result is wrong with probability below 2^-100 for each
//                of its values: if both parties encrypt, each keeps to half of the variance.
// Cost           64 bytes both ways before the first product of a session; a tag both ways; for
//                each party that encrypts, keys that are not there yet, uploads, and c1 of answers
//                back, as the plan says; drop_last_bit of as many numbers as the result has unless
//                the last bit is kept. Depth 3, or 2 if nothing is dropped; the first product one
//                more. Products of m x k and k x n take, in bits: if both encrypt their shares of
//                x, 2 m k upload_bits up and 2 m n (ell + 11) down; if one encrypts both factors,
//                (m k + k n) upload_bits up and 2 m n (ell + 11) down; upload_bits is about
//                2 ell + 9. With 2^c columns at once uploads are up to 2^(c + 1) times as long.
// Source         lattice/wide_product.h; SiRNN (Rathee et al., S&P 2021), appendix D, for the two
//                terms; Lu et al., BumbleBee (NDSS 2025), for one answer to both.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/wide_plan.h"

namespace privml::twopc {

// What a party keeps for products, of any shapes, of one session; both use it for the same products
// in the same order. Keys that have served lattice::kMostWideProducts are made anew.
struct WideSession {
  struct Keys {
    std::unique_ptr<lattice::WideKeyOwner> owner = nullptr;  // at the party that encrypts
    std::unique_ptr<lattice::WideKeys> keys = nullptr;       // at the other party
  };
  int threads = 1;                        // that answers are made by; each party has its own number
  std::array<WideKeyStates, 2> states{};  // by the party that encrypts
  bool agreed = false;
  WidePlans plans;
  // Since the first product:
  lattice::Digest digest{};  // that the keys' own ones come from
  std::unique_ptr<crypto::Prg> prg = nullptr;
  std::array<std::array<Keys, lattice::kWideSets.size()>, 2> keys{};
};

// x: batch x rows x inner, y: batch x inner x columns, without words if the other party knows it;
// out: batch x rows x columns. Throws InvalidArgument if plan_wide() has no plan, and on formats
// and lengths that do not fit, before anything is sent; ProtocolError if the peer's product or
// messages are others.
void wide_matmul(ot::Party& party, WideSession& session, const WideProduct& product,
                 const MatrixBatch& x, const MatrixBatch& y, std::span<u64> out);
// The same for factors that stand row-major, empty if the other party knows them.
void wide_matmul(ot::Party& party, WideSession& session, const WideProduct& product,
                 std::span<const u64> x, std::span<const u64> y, std::span<u64> out);
// The session's states are those before the product, and after it those that follow.
void cost_wide_matmul(ot::CostMeter& meter, WideSession& session, const WideProduct& product);

}  // namespace privml::twopc
