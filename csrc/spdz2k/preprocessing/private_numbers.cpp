// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/private_numbers.h"

#include <vector>

#include "base/error.h"
#include "base/pack.h"
#include "spdz2k/preprocessing/bucketing.h"
#include "spdz2k/preprocessing/carry_proof.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

// The random assignment of others to numbers: other order[slot] belongs to number slot / (size -
// 1); the last ones are opened.
struct Slots {
  NumberBuckets buckets;
  i64 n;
  i64 count() const { return buckets.others(n); }
  bool shown(i64 slot) const { return slot >= n * (buckets.size - 1); }
  i64 head(i64 slot) const { return slot / (buckets.size - 1); }
};

// Bits of the others: other i has the correlations [i * k, (i + 1) * k); masks of the proof follow.
struct OtherBits {
  WipedVector<crypto::Block> own, peer;
};

template <class R>
OtherBits draw_others(ot::Party& party, i64 count) {
  const i64 all = count * R::k + kProofMasks;
  OtherBits bits{WipedVector<crypto::Block>(all), WipedVector<crypto::Block>(all)};
  ot::reserve(party, all, all);
  ot::draw_as_receiver(party, bits.own.data(), all);
  ot::draw_as_sender(party, bits.peer.data(), all);
  return bits;
}

// This party's numbers in the clear: n numbers, then the others.
template <class R>
WipedVector<u64> clear_numbers(const AuthenticatedBits<R>& bits, int width, i64 n,
                               const OtherBits& others, i64 count) {
  WipedVector<u64> numbers(n + count);
  std::fill(numbers.begin(), numbers.end(), u64{0});
  for (int b = 0; b < width; ++b) {
    for (i64 i = 0; i < n; ++i) numbers[i] |= u64{crypto::low_bit(bits.own[b * n + i])} << b;
  }
  for (i64 i = 0; i < count; ++i) {
    const crypto::Block* row = others.own.data() + i * R::k;
    for (int b = 0; b < R::k; ++b) numbers[n + i] |= u64{crypto::low_bit(row[b])} << b;
  }
  return numbers;
}

// Shares of both parties' numbers, mod 2^k.
template <class R>
std::array<WordShares<R>, 2> input_numbers(Session<R>& session, std::span<const u64> mine) {
  const i64 n = std::ssize(mine);
  std::array<WordShares<R>, 2> shares{WordShares<R>(n), WordShares<R>(n)};
  WipedVector<u64> mask(n);
  for (int owner : {0, 1}) {
    const bool own = owner == session.rank;
    session.supply().masks(owner, shares[owner], own ? std::span(mask) : std::span<u64>());
  }
  std::vector<u64> corrections(n);
  std::vector<u8> wire(packed_bytes(n, R::k));
  for (i64 i = 0; i < n; ++i) corrections[i] = mine[i] - mask[i];
  const auto add = [&](int owner) {
    for (u64& word : corrections) word &= low_mask(R::k);
    add_public(session.rank, session.alpha(), shares[owner], std::span<const u64>(corrections),
               shares[owner]);
  };
  pack(corrections.data(), n, R::k, wire.data());
  add(session.rank);
  session.channel.write(wire);
  session.channel.read(wire);
  unpack(wire.data(), n, R::k, corrections.data());
  add(1 - session.rank);
  return shares;
}

// Opens and checks the sums of both owners' slots.
template <class R>
std::array<std::vector<u64>, 2> open_sums(Session<R>& session, const Slots& slots,
                                          std::span<const u32> order,
                                          const std::array<WordShares<R>, 2>& shares) {
  using Word = typename R::Word;
  const i64 count = slots.count();
  WordShares<R> sums(2 * count);
  for (int owner : {0, 1}) {
    const WordShares<R>& from = shares[owner];
    for (i64 slot = 0; slot < count; ++slot) {
      const i64 at = owner * count + slot, other = slots.n + order[slot];
      const bool alone = slots.shown(slot);
      const i64 head = alone ? 0 : slots.head(slot);
      sums.value[at] = static_cast<Word>(from.value[other] + (alone ? Word{0} : from.value[head]));
      sums.mac[at] = static_cast<Word>(from.mac[other] + (alone ? Word{0} : from.mac[head]));
    }
  }
  std::vector<u64> opened(2 * count);
  open<R>(session, sums, R::k, opened);
  check(session);
  return {std::vector<u64>(opened.begin(), opened.begin() + count),
          std::vector<u64>(opened.begin() + count, opened.end())};
}

// Adds all slots to a prover or verifier; heads and others are both t or both q.
template <class R, class Side>
void add_slots(Side& side, const Slots& slots, std::span<const u32> order,
               const crypto::Block* heads, int width, const crypto::Block* others,
               std::span<const u64> sums) {
  for (i64 slot = 0; slot < slots.count(); ++slot) {
    const BitRow other{others + order[slot] * i64{R::k}, 1, R::k};
    const BitRow head = slots.shown(slot) ? BitRow{heads, slots.n, 0}
                                          : BitRow{heads + slots.head(slot), slots.n, width};
    side.add(head, other, sums[slot]);
  }
}

template <class T>
MutableBytes bytes_of(T& value) {
  return {reinterpret_cast<u8*>(&value), sizeof value};
}

}  // namespace

template <class R>
PrivateNumbers<R> generate_private_numbers(Session<R>& session, ot::Party& party, int width,
                                           i64 n) {
  expect(1 <= width && width <= R::k, "private numbers: width must be in 1..k");
  expect(1 <= n && n <= kMostNumbers, "private numbers: wrong size of a batch");
  const Slots slots{number_buckets(n, kSecurityBits<R>), n};
  const i64 count = slots.count();
  const int rank = session.rank;
  const auto bits = authenticate_random_bits(session, party, width * n, Correlations::kept);
  const OtherBits others = draw_others<R>(party, count);
  auto shares = input_numbers(session, clear_numbers(bits, width, n, others, count));

  const std::vector<u32> order = random_permutation(session.toss(), count);
  const auto sums = open_sums(session, slots, order, shares);
  const crypto::Block seed = session.toss();
  CarryProver prover(seed, R::k);
  CarryVerifier verifier(seed, R::k, party.sender.delta());
  add_slots<R>(prover, slots, order, bits.own.data(), width, others.own.data(), sums[rank]);
  add_slots<R>(verifier, slots, order, bits.peer.data(), width, others.peer.data(), sums[1 - rank]);
  const i64 masks = count * R::k;
  std::array<crypto::Block, 2> proof = prover.finish(others.own.data() + masks);
  session.channel.write(bytes_of(proof));
  session.channel.read(bytes_of(proof));
  if (!verifier.verify(others.peer.data() + masks, proof)) {
    session.abort("private numbers: the peer's bits are not those of its numbers");
  }

  PrivateNumbers<R> out;
  for (int owner : {0, 1}) {
    shares[owner].resize(n);
    out.words[owner] = std::move(shares[owner]);
    out.bits[owner] = BitShares<R>(width * n);
    shares_of_owner<R>(session, bits, owner, 0, out.bits[owner]);
  }
  return out;
}

template <class R>
void cost_generate_private_numbers(CostMeter& meter, int width, i64 n) {
  const i64 count = number_buckets(n, kSecurityBits<R>).others(n);
  const i64 correlations = count * R::k + kProofMasks;
  cost_authenticate_random_bits<R>(meter, width * n);
  meter.reserve(correlations, correlations);
  meter.draw(0, correlations);
  meter.draw(1, correlations);
  for (int owner : {0, 1}) meter.demand.masks[owner] += n + count;
  meter.exchange(packed_bytes(n + count, R::k), packed_bytes(n + count, R::k));
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  cost_open<R>(meter, 2 * count, R::k);
  cost_check<R>(meter);
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  meter.exchange(2 * sizeof(crypto::Block), 2 * sizeof(crypto::Block));
}

#define PRIVML_INSTANTIATE(R)                                                                \
  template PrivateNumbers<R> generate_private_numbers<R>(Session<R>&, ot::Party&, int, i64); \
  template void cost_generate_private_numbers<R>(CostMeter&, int, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
