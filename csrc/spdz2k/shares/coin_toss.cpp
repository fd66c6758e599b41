// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/coin_toss.h"

#include <sodium.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "base/wipe.h"

namespace privml::spdz2k {
namespace {

constexpr const char* kLabel = "privml spdz2k coin";

template <class T>
Bytes bytes_of(const T& value) {
  return {reinterpret_cast<const u8*>(&value), sizeof value};
}

}  // namespace

Commitment commit(const char* label, int rank, u64 number, Bytes message) {
  crypto_generichash_state state;
  Commitment out;
  const u64 header[3] = {std::strlen(label), static_cast<u64>(rank), number};
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(header), sizeof header);
  crypto_generichash_update(&state, reinterpret_cast<const u8*>(label), header[0]);
  crypto_generichash_update(&state, message.data(), message.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

bool opens(const Commitment& commitment, const char* label, int rank, u64 number, Bytes message) {
  const Commitment expected = commit(label, rank, number, message);
  return sodium_memcmp(expected.data(), commitment.data(), expected.size()) == 0;
}

CoinToss::CoinToss(int rank, net::Channel& channel, crypto::Prg& prg)
    : rank_(rank), channel_(channel), prg_(prg) {
  const Commitment mine = commit_next();
  channel_.write(mine);
  channel_.read(theirs_);
}

CoinToss::~CoinToss() { wipe(&mine_, sizeof mine_); }

Commitment CoinToss::commit_next() {
  mine_ = {prg_.next_block(), prg_.next_block()};
  return commit(kLabel, rank_, number_, bytes_of(mine_));
}

crypto::Block CoinToss::toss() {
  const Opening mine = mine_;
  const u64 number = number_++;
  const Commitment next = commit_next();
  std::array<u8, kCoinTossBytes> message;
  std::memcpy(message.data(), &mine, sizeof mine);
  std::memcpy(message.data() + sizeof mine, next.data(), next.size());
  channel_.write(message);
  channel_.read(message);
  Opening theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  if (!opens(theirs_, kLabel, 1 - rank_, number, bytes_of(theirs))) {
    throw SecurityAbort("coin toss " + std::to_string(number) +
                        ": the peer's value is not the one it committed to");
  }
  std::memcpy(theirs_.data(), message.data() + sizeof theirs, theirs_.size());
  return mine.seed ^ theirs.seed;
}

}  // namespace privml::spdz2k
