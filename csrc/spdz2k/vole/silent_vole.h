// SPDX-License-Identifier: Apache-2.0
// Silent vector OLE over Z_{2^(k+2s)}: random products with the MAC key from learning parity with
// noise over the ring. With it a MAC costs one word of correction instead of s/4 words.
//
// Functionality  VoleSource (authentication.h): its owner gets random u and v, the other side
//                m = u * alpha + v.
// Method         an iteration spends a secret of lpn.secret correlations, one for each of lpn.trees
//                trees and a mask. A tree (ggm.h) is of the key's side, which knows all its leaves
//                as m, v being the same but at the owner's random place, where u = 2x + 1 for a
//                spent x and one word from the key's side corrects v. Then the public sparse matrix
//                of lpn.h times the secret is added to u, v and m alike, each row ten words. The
//                last outputs are spent by the next iteration; the first secret comes from
//                authentication.h.
// Malicious      trees with proofs; then, chi tossed, the owner shows y = sum chi u + mask, the
//                key's side commits to sum chi m - alpha y + mask, the owner shows its sum of v,
//                and the commitment is opened if they agree. A correction word wrong by an odd
//                multiple of 2^(k+2s-j) passes with a guess at the lowest min(j, s) bits of chi at
//                the owner's place, so at every second place if j = 1; it reveals as many bits
//                of the place and makes only the dishonest party's own m wrong. A wrong y passes
//                with a guess at as many bits of the key. A wrong guess ends the session.
// Assumption     learning parity with regular noise over Z_{2^r} with odd noise, as hard as over
//                bits (Liu, Wang, Yang, Yu, eprint 2022/712, section 4): the sets of lpn.h; as
//                there, with the answers to guesses at the noise that end the session when wrong;
//                ggm.h.
// Cost           key's side to owner, per iteration: 32 bytes per level, 64 and a word per tree;
//                that is less than a byte per correlation. Set-up: secret + trees + 1 authenticated
//                words.
// Source         Baum, Braun, Munch-Hansen, Scholl, "Moz Z2k arella" (Crypto 2022), sections 4 and
//                5; Weng, Yang, Katz, Wang, "Wolverine" (S&P 2021) for bootstrapping and the check.
#pragma once

#include "ot/lpn.h"
#include "spdz2k/preprocessing/authentication.h"
#include "spdz2k/shares/cost.h"

namespace privml::spdz2k {

// The smaller set: an iteration fits the second-level cache and gives 137,000 correlations.
inline constexpr ot::LpnParameters kRingLpn = ot::kLpnSetup;
inline constexpr i64 kSpentVoles = kRingLpn.secret + kRingLpn.trees + 1;
inline constexpr i64 kMadeVoles = kRingLpn.samples() - kSpentVoles;

template <class R>
class SilentVole final : public VoleSource<R> {
 public:
  using W = Wide<R>;
  // Authenticates the first secrets. `authentication` must outlive this object and uses it from
  // here on (Authentication::use_source).
  explicit SilentVole(Authentication<R>& authentication);
  ~SilentVole() override;

  void draw(std::span<W> u, std::span<W> v, std::span<W> m) override;

 private:
  struct Pair {
    W u, v;
  };
  void extend(bool mine, bool theirs);
  void send_trees(std::span<W> m);
  bool receive_trees(std::span<Pair> pairs);
  void check(std::span<const Pair> pairs, std::span<const W> m);

  Authentication<R>& authentication_;
  crypto::Block code_;                         // of the public matrices
  std::array<u64, 2> iterations_{};            // by the owner's rank
  WipedVector<Pair> my_secret_, my_stock_;     // as owner; stock is used from its end
  WipedVector<W> their_secret_, their_stock_;  // as the key's side
};

template <class R>
void cost_silent_vole_setup(ot::CostMeter& meter);
// Mirrors draw(): counts by the owner's rank.
template <class R>
void cost_silent_vole(ot::CostMeter& meter, SilentVoleMeter& voles, std::array<i64, 2> n);

}  // namespace privml::spdz2k
