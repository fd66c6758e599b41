// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/bit_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/multiversion.h"

namespace privml::spdz2k {
namespace {

constexpr const char* kLabel = "privml spdz2k bit check";
constexpr i64 kBlock = 2048;

// sums[j] += words[i] for every i whose coefficient has bit j.
#define PRIVML_ADD_SELECTED(W)                                                   \
  PRIVML_TARGET_CLONES                                                           \
  void add_selected(const W* coefficients, const W* words, i64 count, W* sums) { \
    constexpr int kBits = 8 * sizeof(W);                                         \
    W local[kBits];                                                              \
    std::memcpy(local, sums, sizeof local);                                      \
    for (i64 i = 0; i < count; ++i) {                                            \
      const W coefficient = coefficients[i], word = words[i];                    \
      for (int j = 0; j < kBits; ++j) {                                          \
        const W chosen = static_cast<W>(0 - (coefficient >> j & 1));             \
        local[j] = static_cast<W>(local[j] + (word & chosen));                   \
      }                                                                          \
    }                                                                            \
    std::memcpy(sums, local, sizeof local);                                      \
  }
PRIVML_ADD_SELECTED(u8)
PRIVML_ADD_SELECTED(u32)
PRIVML_ADD_SELECTED(u64)
#undef PRIVML_ADD_SELECTED

template <class T>
MutableBytes bytes_of(T* words, i64 count) {
  return {reinterpret_cast<u8*>(words), static_cast<std::size_t>(count) * sizeof(T)};
}

// One party's s random sums of shares and of MACs.
template <class R>
struct RandomSums {
  using BitWord = typename R::BitWord;
  static_assert(8 * sizeof(BitWord) == R::s);
  std::array<BitWord, R::s> value{}, mac{};

  void add(BitView<R> sharings, crypto::Prg& chi) {
    std::vector<BitWord> coefficients(std::min(kBlock, sharings.size()));
    for (i64 first = 0; first < sharings.size(); first += kBlock) {
      const i64 count = std::min(kBlock, sharings.size() - first);
      chi.fill_bytes(bytes_of(coefficients.data(), count));
      add_selected(coefficients.data(), sharings.value.data() + first, count, value.data());
      add_selected(coefficients.data(), sharings.mac.data() + first, count, mac.data());
    }
  }
};

}  // namespace

template <class R>
void check_bit_macs(Session<R>& session, std::initializer_list<BitView<R>> sharings,
                    const char* what) {
  using BitWord = typename R::BitWord;
  using Words = std::array<BitWord, R::s>;
  net::Channel& channel = session.channel;
  WordShares<R> masks(R::s);
  session.supply().randoms(masks);
  crypto::Prg chi(session.toss());
  RandomSums<R> sums;
  for (const BitView<R>& view : sharings) sums.add(view, chi);

  Words mine, theirs;
  for (int j = 0; j < R::s; ++j) {
    mine[j] = static_cast<BitWord>(sums.value[j] + static_cast<BitWord>(masks.value[j]));
  }
  channel.write(bytes_of(mine.data(), R::s));
  channel.read(bytes_of(theirs.data(), R::s));

  struct Differences {
    Words words;
    std::array<u8, 16> nonce;  // hides what is committed to
  } shown, received;
  for (int j = 0; j < R::s; ++j) {
    const BitWord opened = static_cast<BitWord>(mine[j] + theirs[j]);
    const BitWord mac = static_cast<BitWord>(sums.mac[j] + static_cast<BitWord>(masks.mac[j]));
    shown.words[j] = static_cast<BitWord>(mac - product(session.bit_alpha(), opened));
  }
  session.prg.fill_bytes(shown.nonce);
  const u64 number = static_cast<u64>(session.checks);
  const Commitment commitment = commit(kLabel, session.rank, number, bytes_of(&shown, 1));
  Commitment their_commitment;
  channel.write(commitment);
  channel.read(their_commitment);
  channel.write(bytes_of(&shown, 1));
  channel.read(bytes_of(&received, 1));

  bool holds = opens(their_commitment, kLabel, 1 - session.rank, number, bytes_of(&received, 1));
  for (int j = 0; j < R::s; ++j) {
    holds &= static_cast<BitWord>(shown.words[j] + received.words[j]) == 0;
  }
  if (!holds) {
    session.abort(std::string(what) +
                  ": the MACs do not hold, the peer did not follow the protocol");
  }
}

template <class R>
void cost_check_bit_macs(CostMeter& meter) {
  constexpr i64 kWords = R::s * sizeof(typename R::BitWord), kNonce = 16;
  meter.demand.randoms += R::s;
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  meter.exchange(kWords, kWords);
  meter.exchange(sizeof(Commitment), sizeof(Commitment));
  meter.exchange(kWords + kNonce, kWords + kNonce);
}

#define PRIVML_INSTANTIATE(R)                                                                   \
  template void check_bit_macs<R>(Session<R>&, std::initializer_list<BitView<R>>, const char*); \
  template void cost_check_bit_macs<R>(CostMeter&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
