// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/sacrifice.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "spdz2k/shares/columns.h"

namespace privml::spdz2k {
namespace {

constexpr const char* kLabel = "privml spdz2k sacrifice";

}  // namespace

template <class R>
void exchange_wide(Session<R>& session, std::span<const Wide<R>> mine, std::span<Wide<R>> theirs) {
  write_column(session.channel, mine.data(), std::ssize(mine), kWideBits<R>);
  read_column(session.channel, theirs.data(), std::ssize(theirs), kWideBits<R>);
}

template <class R>
void open_wide(Session<R>& session, std::span<Wide<R>> words) {
  std::vector<Wide<R>> theirs(words.size());
  exchange_wide<R>(session, words, theirs);
  for (size_t i = 0; i < words.size(); ++i) words[i] += theirs[i];
}

template <class R>
void open_zeros(Session<R>& session, std::span<Wide<R>> words) {
  using High = typename R::BitWord;
  const i64 n = std::ssize(words);
  std::vector<High> mine(n), theirs(n);
  for (i64 i = 0; i < n; ++i) mine[i] = upper<R>(words[i]);
  write_column(session.channel, mine.data(), n, R::s);
  read_column(session.channel, theirs.data(), n, R::s);
  for (i64 i = 0; i < n; ++i) {
    // Lower parts that cancel carry one into the upper ones unless both are zero.
    const High carry = narrow<R>(words[i]) != 0;
    words[i] = join<R>(0, static_cast<High>(mine[i] + theirs[i] + carry));
  }
}

template <class R>
void check_residuals(Session<R>& session, std::span<const Wide<R>> residuals, const char* what) {
  const crypto::Block seed = session.toss();
  std::vector<typename R::BitWord> chi(residuals.size());
  crypto::Prg(seed).fill_bytes(bytes_of(std::span(chi)));
  struct {
    Wide<R> sum{};
    crypto::Block nonce;
  } mine, theirs;
  mine.nonce = session.prg.next_block();  // hides what is committed to
  for (size_t i = 0; i < chi.size(); ++i) mine.sum += product(Wide<R>(chi[i]), residuals[i]);

  const auto message_of = [](const auto& opening) {
    std::vector<u8> message(sizeof(crypto::Block) + 3 * sizeof(u64));
    std::memcpy(message.data(), &opening.nonce, sizeof(crypto::Block));
    for (int j = 0; 64 * j < kWideBits<R>; ++j) {
      const u64 limb = detail::get_limb(opening.sum, j) & low_mask(kWideBits<R> - 64 * j);
      std::memcpy(message.data() + sizeof(crypto::Block) + 8 * j, &limb, sizeof limb);
    }
    return message;
  };
  const auto nonce_of = [](auto& opening) {
    return MutableBytes(reinterpret_cast<u8*>(&opening.nonce), sizeof(crypto::Block));
  };
  const Commitment commitment = commit(kLabel, session.rank, seed.lo, message_of(mine));
  Commitment their_commitment;
  session.channel.write(commitment);
  session.channel.read(their_commitment);
  write_column(session.channel, &mine.sum, 1, kWideBits<R>);
  session.channel.write(nonce_of(mine));
  read_column(session.channel, &theirs.sum, 1, kWideBits<R>);
  session.channel.read(nonce_of(theirs));
  if (!opens(their_commitment, kLabel, 1 - session.rank, seed.lo, message_of(theirs))) {
    session.abort(std::string(what) + ": the peer's sum is not the one it committed to");
  }
  if (!equal_modulo(static_cast<Wide<R>>(mine.sum + theirs.sum), Wide<R>(0), kWideBits<R>)) {
    session.abort(std::string(what) + " failed: the peer did not follow the protocol");
  }
}

template <class R>
i64 wide_bytes(i64 n) {
  return column_bytes(n, kWideBits<R>);
}

template <class R>
void cost_open_zeros(ot::CostMeter& meter, i64 n) {
  meter.exchange(column_bytes(n, R::s), column_bytes(n, R::s));
}

template <class R>
void cost_check_residuals(ot::CostMeter& meter) {
  const i64 opening = wide_bytes<R>(1) + static_cast<i64>(sizeof(crypto::Block));
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  meter.exchange(sizeof(Commitment), sizeof(Commitment));
  meter.exchange(opening, opening);
}

#define PRIVML_INSTANTIATE(R)                                                                \
  template void open_wide<R>(Session<R>&, std::span<Wide<R>>);                               \
  template void exchange_wide<R>(Session<R>&, std::span<const Wide<R>>, std::span<Wide<R>>); \
  template void open_zeros<R>(Session<R>&, std::span<Wide<R>>);                              \
  template void check_residuals<R>(Session<R>&, std::span<const Wide<R>>, const char*);      \
  template i64 wide_bytes<R>(i64);                                                           \
  template void cost_open_zeros<R>(ot::CostMeter&, i64);                                     \
  template void cost_check_residuals<R>(ot::CostMeter&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
