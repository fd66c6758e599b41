// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/check.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "spdz2k/shares/group_check.h"

namespace privml::spdz2k {
namespace {

template <class T>
void append(std::vector<u8>& out, const T* values, std::size_t count) {
  const u8* bytes = reinterpret_cast<const u8*>(values);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

template <class T>
std::vector<T> take(const u8*& at, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), at, count * sizeof(T));
  at += count * sizeof(T);
  return values;
}

bool any_large(const std::map<int, i64>& groups, i64 most) {
  return std::any_of(groups.begin(), groups.end(),
                     [most](const auto& group) { return group.second > most; });
}

}  // namespace

template <class R>
void check(Session<R>& session) {
  using Word = typename R::Word;
  using BitWord = typename R::BitWord;
  session.require_alive();
  const std::map<int, i64> groups = session.openings.groups();
  if (groups.empty()) return;
  const std::string batch = "MAC check of batch " + std::to_string(session.checks) + " (" +
                            std::to_string(session.openings.pending()) + " openings)";
  net::Channel& channel = session.channel;

  const crypto::Block subsets = any_large(groups, R::s) ? session.toss() : crypto::kZeroBlock;
  std::vector<GroupCheck<R, BitWord>> bit_groups;
  std::vector<GroupCheck<R, Word>> word_groups;
  for (const auto& [group, count] : groups) {
    const crypto::Block seed = seed_of(subsets, group);
    if (group == kBitGroup) {
      bit_groups.emplace_back(session, session.openings.bits(), 1, seed);
    } else {
      word_groups.emplace_back(session, session.openings.words().at(group), group, seed);
    }
  }
  const auto for_all = [&](auto&& function) {
    int number = 0;
    for (const auto& group : bit_groups) function(group, BitWord{}, number++);
    for (const auto& group : word_groups) function(group, Word{}, number++);
  };

  std::vector<u8> mine, theirs;
  for_all([&](const auto& group, auto, int) {
    append(mine, group.masked().data(), group.masked().size());
  });
  theirs.resize(mine.size());
  channel.write(mine);
  channel.read(theirs);
  const crypto::Block weights = session.toss();
  mine.clear();
  const u8* at = theirs.data();
  for_all([&](const auto& group, auto, int number) {
    const auto sums = take<BitWord>(at, group.masked().size());
    const auto result = group.result(sums.data(), seed_of(weights, number));
    append(mine, &result, 1);
  });

  const crypto::Block hiding = session.prg.next_block();  // what is committed to
  append(mine, &hiding, 1);
  const Commitment my_commitment = commit(kCheckLabel, session.rank, session.checks, mine);
  Commitment their_commitment;
  channel.write(my_commitment);
  channel.read(their_commitment);
  theirs.resize(mine.size());
  channel.write(mine);
  channel.read(theirs);
  if (!opens(their_commitment, kCheckLabel, 1 - session.rank, session.checks, theirs)) {
    session.abort(batch + ": the peer's values are not the ones it committed to");
  }

  const u8* first = mine.data();
  const u8* second = theirs.data();
  bool zero = true;
  for_all([&](const auto& group, auto word, int) {
    using W = decltype(word);
    const W sum = static_cast<W>(take<W>(first, 1)[0] + take<W>(second, 1)[0]);
    zero &= low_bits(sum, group.modulus()) == 0;
  });
  if (!zero) session.abort(batch + " failed: the peer did not follow the protocol");
  session.openings.clear();
  ++session.checks;
}

template <class R>
void cost_check(CostMeter& meter) {
  using BitWord = typename R::BitWord;
  if (meter.pending.empty()) return;
  i64 results = sizeof(crypto::Block), sums = 0;
  for (const auto& [group, count] : meter.pending) {
    results += group == kBitGroup ? sizeof(BitWord) : sizeof(typename R::Word);
    sums += masked_sums<R>(count);
  }
  if (any_large(meter.pending, R::s)) meter.exchange(kCoinTossBytes);
  meter.exchange(sums * static_cast<i64>(sizeof(BitWord)));
  meter.exchange(kCoinTossBytes);
  meter.exchange(sizeof(Commitment));
  meter.exchange(results);
  meter.demand.randoms += sums;
  meter.pending.clear();
  ++meter.checks;
}

#define PRIVML_INSTANTIATE(R)          \
  template void check<R>(Session<R>&); \
  template void cost_check<R>(CostMeter&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
