// SPDX-License-Identifier: Apache-2.0
// Random values that neither party can influence or predict.
//
// Functionality  both parties get the same uniform 128-bit seed.
// Method         seed = seed^0 ^ seed^1; every seed is committed to one toss ahead, so a toss is
//                one exchange: it opens the last commitments and carries the next ones. A party's
//                part stays hidden until it tosses, and is fixed before the other's can be seen.
// Assumption     BLAKE2b as a random oracle. Cost: 64 bytes from each party, one exchange, and 32
//                bytes at the start.
#pragma once

#include "crypto/prg.h"
#include "net/channel.h"
#include "spdz2k/shares/commitment.h"

namespace privml::spdz2k {

inline constexpr i64 kCoinTossBytes = 64;

class CoinToss {
 public:
  // Exchanges the first commitments.
  CoinToss(int rank, Channel& channel, Prg& prg);
  ~CoinToss();
  CoinToss(const CoinToss&) = delete;
  CoinToss& operator=(const CoinToss&) = delete;

  // Throws SecurityAbort when the peer opens something else than it committed to.
  Block toss();

 private:
  struct Opening {
    Block seed, nonce;
  };
  Commitment commit_next();

  int rank_;
  Channel& channel_;
  Prg& prg_;
  u64 number_ = 0;
  Opening mine_{};
  Commitment theirs_{};
};

}  // namespace privml::spdz2k
