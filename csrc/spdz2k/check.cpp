// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/check.h"

#include <cstring>
#include <vector>

#include "base/error.h"

namespace privml::spdz2k {
namespace {

constexpr const char* kLabel = "privml spdz2k mac check";
constexpr i64 kBlock = 2048;

template <class T>
void append(std::vector<u8>& out, const T& value) {
  const u8* bytes = reinterpret_cast<const u8*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

template <class T>
T take(const u8*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

// A group's random combination: of the shares' upper parts, s bits, and of what the MACs differ.
template <class R, class W>
struct Combination {
  typename R::BitWord upper = 0;
  W residual = 0;
};

template <class R, class W>
Combination<R, W> combine(ShareView<W> slots, int bits, Prg& chi) {
  using BitWord = typename R::BitWord;
  std::vector<BitWord> factors(std::min(kBlock, slots.size()));
  Combination<R, W> sum;
  for (i64 first = 0; first < slots.size(); first += kBlock) {
    const i64 count = std::min(kBlock, slots.size() - first);
    chi.fill_bytes({reinterpret_cast<u8*>(factors.data()), count * sizeof(BitWord)});
    const W* value = slots.value.data() + first;
    const W* mac = slots.mac.data() + first;
    for (i64 i = 0; i < count; ++i) {
      sum.upper += product(factors[i], static_cast<BitWord>(value[i] >> bits));
      sum.residual += product(W{factors[i]}, mac[i]);
    }
  }
  return sum;
}

// One group's part of the check; `bits` of its modulus, W the words of its shares.
template <class R, class W>
struct GroupCheck {
  using BitWord = typename R::BitWord;

  GroupCheck(Session<R>& session, ShareView<W> slots, int bits, Prg& chi)
      : bits(bits), alpha(static_cast<W>(session.alpha())), sum(combine<R>(slots, bits, chi)) {
    WordShares<R> mask(1);
    session.supply().randoms(mask);
    mask_mac = static_cast<W>(mask.mac[0]);
    masked = low_bits(static_cast<BitWord>(sum.upper + static_cast<BitWord>(mask.value[0])),
                      modulus() - bits);
  }
  // Bits of the group's shares: b + s, or s for shared bits.
  int modulus() const { return std::min(bits + R::s, kWordBits<W>); }
  W result(BitWord theirs) const {
    const BitWord opened = low_bits(static_cast<BitWord>(masked + theirs), modulus() - bits);
    const W difference = static_cast<W>(mask_mac - product(alpha, W{opened}));
    return low_bits(static_cast<W>(sum.residual + static_cast<W>(difference << bits)), modulus());
  }

  int bits;
  W alpha;
  Combination<R, W> sum;
  W mask_mac;
  BitWord masked;
};

}  // namespace

template <class R>
void check(Session<R>& session) {
  using Word = typename R::Word;
  using BitWord = typename R::BitWord;
  session.require_alive();
  const i64 pending = session.openings.pending();
  if (pending == 0) return;
  const std::string batch = "MAC check of batch " + std::to_string(session.checks) + " (" +
                            std::to_string(pending) + " openings)";
  Channel& channel = session.channel;
  Prg chi(session.toss());

  std::vector<GroupCheck<R, BitWord>> bit_groups;
  std::vector<GroupCheck<R, Word>> word_groups;
  if (session.openings.bits().size() > 0) {
    bit_groups.emplace_back(session, session.openings.bits(), 1, chi);
  }
  for (const auto& [bits, slots] : session.openings.words()) {
    if (slots.size() > 0) word_groups.emplace_back(session, slots, bits, chi);
  }

  // p, then z.
  std::vector<u8> mine, theirs;
  for (const auto& group : bit_groups) append(mine, group.masked);
  for (const auto& group : word_groups) append(mine, group.masked);
  theirs.resize(mine.size());
  channel.write(mine);
  channel.read(theirs);
  const u8* at = theirs.data();
  mine.clear();
  for (const auto& group : bit_groups) append(mine, group.result(take<BitWord>(at)));
  for (const auto& group : word_groups) append(mine, group.result(take<BitWord>(at)));

  append(mine, session.prg.next_block());  // hides what is committed to
  const Commitment my_commitment = commit(kLabel, session.rank, session.checks, mine);
  Commitment their_commitment;
  channel.write(my_commitment);
  channel.read(their_commitment);
  theirs.resize(mine.size());
  channel.write(mine);
  channel.read(theirs);
  if (!opens(their_commitment, kLabel, 1 - session.rank, session.checks, theirs)) {
    session.abort(batch + ": the peer's values are not the ones it committed to");
  }

  const u8* first = mine.data();
  const u8* second = theirs.data();
  bool zero = true;
  for (std::size_t i = 0; i < bit_groups.size(); ++i) {
    zero &= static_cast<BitWord>(take<BitWord>(first) + take<BitWord>(second)) == 0;
  }
  for (const auto& group : word_groups) {
    const Word sum = static_cast<Word>(take<Word>(first) + take<Word>(second));
    zero &= low_bits(sum, group.modulus()) == 0;
  }
  if (!zero) session.abort(batch + " failed: the peer did not follow the protocol");
  session.openings.clear();
  ++session.checks;
}

template <class R>
void cost_check(CostMeter& meter) {
  if (meter.pending.empty()) return;
  i64 results = 16;
  for (const auto& [group, count] : meter.pending) {
    results += group == kBitGroup ? sizeof(typename R::BitWord) : sizeof(typename R::Word);
  }
  const i64 groups = std::ssize(meter.pending);
  meter.exchange(kCoinTossBytes);
  meter.exchange(groups * static_cast<i64>(sizeof(typename R::BitWord)));
  meter.exchange(sizeof(Commitment));
  meter.exchange(results);
  meter.demand.randoms += groups;
  meter.pending.clear();
  ++meter.checks;
}

#define PRIVML_INSTANTIATE(R)          \
  template void check<R>(Session<R>&); \
  template void cost_check<R>(CostMeter&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
