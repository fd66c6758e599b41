// SPDX-License-Identifier: Apache-2.0
// Commitments, and random values that neither party can influence or predict.
//
// Functionality  a toss: both parties get the same uniform 128-bit seed.
//                Commitments are by a hash: binding, and hiding if the message contains 128 bits
//                that only the committing party knows. The hash includes the committing party, so a
//                copied commitment cannot be opened.
// Method         seed = seed^0 ^ seed^1; every seed is committed to one toss ahead, so a toss is
//                one exchange: it opens the last commitments and carries the next ones. A party's
//                part stays hidden until it tosses, and is fixed before the other's can be seen.
// Assumption     BLAKE2b as a random oracle. Cost: 64 bytes from each party, one exchange, and 32
//                bytes at the start.
#pragma once

#include <array>

#include "base/types.h"
#include "crypto/prg.h"
#include "net/channel.h"

namespace privml::spdz2k {

using Commitment = std::array<u8, 32>;

// `label` names the purpose and `number` the use within it; both are public.
Commitment commit(const char* label, int rank, u64 number, Bytes message);

// In constant time.
bool opens(const Commitment& commitment, const char* label, int rank, u64 number, Bytes message);

inline constexpr i64 kCoinTossBytes = 64;

class CoinToss {
 public:
  // Exchanges the first commitments.
  CoinToss(int rank, net::Channel& channel, crypto::Prg& prg);
  ~CoinToss();
  CoinToss(const CoinToss&) = delete;
  CoinToss& operator=(const CoinToss&) = delete;

  // Throws SecurityAbort when the peer opens something else than it committed to.
  crypto::Block toss();

 private:
  struct Opening {
    crypto::Block seed, nonce;
  };
  Commitment commit_next();

  int rank_;
  net::Channel& channel_;
  crypto::Prg& prg_;
  u64 number_ = 0;
  Opening mine_{};
  Commitment theirs_{};
};

}  // namespace privml::spdz2k
