// SPDX-License-Identifier: Apache-2.0
// One party's side of an actively secure session: channel, randomness, its part of the MAC key, the
// openings that no check has covered yet, and the supply of correlations. After a failed check the
// session is dead: keys and pending openings are wiped and every later use throws SecurityAbort.
#pragma once

#include <string>

#include "ot/party.h"
#include "spdz2k/preprocessing/supply.h"
#include "spdz2k/shares/coin_toss.h"
#include "spdz2k/shares/openings.h"

namespace privml::spdz2k {

template <class R>
class Session {
 public:
  using Word = typename R::Word;
  using BitWord = typename R::BitWord;

  // Exchanges the first commitments of the coin toss. `key` is this party's part, below 2^s.
  Session(int rank, net::Channel& channel, crypto::Prg& prg, Word key);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Must outlive the session's use. A supply that needs the session itself is set once it exists.
  void set_supply(Supply<R>& supply) { supply_ = &supply; }
  Supply<R>& supply();

  // This party's part of the key, for words and for shared bits.
  Word alpha() const { return alpha_; }
  BitWord bit_alpha() const { return static_cast<BitWord>(alpha_); }

  // A common random seed.
  crypto::Block toss();

  // Throws SecurityAbort with the first cause if the session is dead.
  void require_alive() const;
  // Kills the session and throws SecurityAbort.
  [[noreturn]] void abort(const std::string& cause);

  const int rank;
  net::Channel& channel;
  crypto::Prg& prg;
  Openings<R> openings;
  i64 checks = 0;  // that have passed

 private:
  Word alpha_;
  CoinToss coins_;
  Supply<R>* supply_ = nullptr;
  std::string cause_;  // empty while alive
};

// A fresh part of the key.
template <class R>
typename R::Word draw_key(crypto::Prg& prg);

// A session with a fresh key over a party of the OT layer, which must be set up for malicious
// peers.
template <class R>
std::unique_ptr<Session<R>> make_session(ot::Party& party);

}  // namespace privml::spdz2k
