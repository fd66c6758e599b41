// SPDX-License-Identifier: Apache-2.0
// Authenticated shares of values that one party knows: everything in the preprocessing builds on
// them.
//
// Functionality  both parties put in vectors of words; for each vector the parties get shares of
//                alpha * x, its owner holding x as the share. Besides, the products of a vector
//                with every bit of the other party's pool, a secret of `pool` bits that is fixed
//                until it is renewed and hides what a dishonest party may learn about triples
//                (products.h).
// Method         vector OLE (vole.h) with the MAC key's digits. Check: chi from a common seed
//                tossed after the corrections; the owner shows y = sum chi_i x_i + mask and the
//                same sum of its v_i, the peer compares with its side. For the pool one random
//                combination of its bits as key.
// Soundness      a vector is fixed mod 2^(b-s), for words of b bits, except with probability
//                (s + 1) 2^-s: two values for different digits of the key pass together only if
//                the dishonest owner guesses the digits' bits. Such guesses cost it the session
//                with the probability that they are wrong, like guesses at the MAC key itself.
// Leakage        a dishonest owner may guess at digits of key and pool (above); y is masked.
// Cost           key_product_bytes() (with a VoleSource one word per element) and
//                bit_product_bytes() from each owner, a coin toss, two or
//                three words from each owner.
// Source         SPDZ2k (Crypto 2018), Figs. 5 and 6; MASCOT (CCS 2016) for selective failures.
#pragma once

#include "spdz2k/shares/session.h"
#include "spdz2k/vole/vole.h"

namespace privml::spdz2k {

// Digits of 4 bits: 16 streams and one word per digit and element.
template <class R>
inline constexpr TreeShape kKeyShape{R::s / 4, 4};
// At least 2 (sigma + 2) bits; products.h says why.
template <class R>
inline constexpr TreeShape kPoolShape{(2 * (kSecurityBits<R> + 2) + 5) / 6, 6};

// Random products with the MAC keys: silent_vole.h makes them with few bytes.
template <class R>
class VoleSource {
 public:
  virtual ~VoleSource() = default;
  // This party's u and v, and m = u * alpha + v for the u and v of the peer, whose lengths the
  // parties agree on.
  virtual void draw(std::span<Wide<R>> u, std::span<Wide<R>> v, std::span<Wide<R>> m) = 0;
};
struct SilentVoleMeter;

template <class R>
class Authentication {
 public:
  // Exchanges the seeds of both parties' keys. `party` is set up for malicious peers and is the
  // session's; both must outlive this object.
  Authentication(Session<R>& session, ot::Party& party);

  Session<R>& session() { return session_; }
  ot::Party& party() { return party_; }
  std::span<const u8> pool() const { return {key_.data() + R::s, key_.size() - R::s}; }
  // A fresh pool. A check that fails may show the pool that its batches used, and with it what was
  // guessed about earlier batches; so batches that are in use must not share one with new ones.
  void renew_pool();
  // From here on products with the MAC keys come from `source`, at both parties; null: from
  // the seeds again.
  void use_source(VoleSource<R>* source) { source_ = source; }

  // Both parties' vectors at once; W is the ring's word or the wide one. Gets this party's shares
  // of alpha times its own vector and of alpha times the peer's. Returns a common random seed that
  // was tossed after the vectors were fixed. Throws SecurityAbort, for good, if the check fails.
  template <class W>
  crypto::Block authenticate(std::span<const W> mine, std::span<W> my_macs,
                             std::span<W> their_macs);
  // The same, with shares of the products of this party's vector and the peer's pool, and of the
  // peer's vector and this party's pool.
  crypto::Block authenticate(std::span<const Wide<R>> mine, std::span<Wide<R>> my_macs,
                             std::span<Wide<R>> their_macs, Columns<Wide<R>>& mine_by_peer_pool,
                             Columns<Wide<R>>& theirs_by_own_pool);

  // Products with the pool without authentication or check. One party sends, the other receives.
  Columns<typename R::Word> send_to_pool(std::span<const typename R::Word> x);
  Columns<typename R::Word> receive_by_pool(i64 n);

 private:
  template <class W>
  crypto::Block run(std::span<const W> mine, std::span<W> my_macs, std::span<W> their_macs,
                    Columns<W>* by_peer_pool, Columns<W>* by_own_pool);

  Session<R>& session_;
  ot::Party& party_;
  WipedVector<u8> key_;  // bits of the MAC key, then of the pool
  std::vector<SeedPair> seeds_;
  VoleSource<R>* source_ = nullptr;
};

template <class R>
void cost_authentication_setup(ot::CostMeter& meter);
template <class R>
void cost_renew_pool(ot::CostMeter& meter);
// Counts by the owner's rank; words of `bits` bits. `voles` if a SilentVole is the source.
template <class R>
void cost_authenticate(ot::CostMeter& meter, std::array<i64, 2> n, int bits, bool by_pool,
                       SilentVoleMeter* voles = nullptr);

}  // namespace privml::spdz2k
