// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/bit_triples.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ot/derive.h"
#include "spdz2k/preprocessing/authenticated_bits.h"
#include "spdz2k/preprocessing/bit_check.h"
#include "spdz2k/preprocessing/bucketing.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kChunk = i64{1} << 16;  // leaky triples of one exchange
constexpr i64 kWords = 3;             // correlations of one

// Fills x and z for the given y.
template <class R>
void leaky_products(Session<R>& session, ot::Party& party, BitView<R> y, BitSpan<R> x,
                    BitSpan<R> z) {
  using BitWord = typename R::BitWord;
  const i64 n = y.size(), chunk = std::min(n, kChunk);
  const BitWord alpha = session.bit_alpha();
  ot::reserve(party, n, n);
  WipedVector<crypto::Block> own(chunk), peer(chunk);
  WipedVector<u64> offered(kWords * chunk), kept(kWords * chunk), received(kWords * chunk);
  WipedVector<u8> choices(chunk);
  for (i64 first = 0; first < n; first += kChunk) {
    const i64 count = std::min(kChunk, n - first);
    const std::size_t words = kWords * count;
    ot::draw_as_receiver(party, own.data(), count);
    ot::draw_as_sender(party, peer.data(), count);
    for (i64 i = 0; i < count; ++i) {
      choices[i] = crypto::low_bit(own[i]);
      offered[kWords * i] = alpha;
      offered[kWords * i + 1] = y.value[first + i];
      offered[kWords * i + 2] = y.mac[first + i];
    }
    ot::additive_send(party, peer.data(), std::span(offered).first(words), kWords, R::s,
                      std::span(kept).first(words));
    ot::additive_receive(party, own.data(), std::span(choices).first(count), kWords, R::s,
                         std::span(received).first(words));
    for (i64 i = 0; i < count; ++i) {
      // What this party's own bit times its own words adds to the two cross products.
      const u64 bit = u64{0} - choices[i];
      const auto sum = [&](i64 w) {
        const i64 at = kWords * i + w;
        return static_cast<BitWord>((offered[at] & bit) + kept[at] + received[at]);
      };
      x.value[first + i] = choices[i];
      x.mac[first + i] = sum(0);
      z.value[first + i] = sum(1);
      z.mac[first + i] = sum(2);
    }
  }
}

template <class W>
void add_to(ShareSpan<W> out, i64 at, ShareView<W> in, i64 from) {
  out.value[at] = static_cast<W>(out.value[at] + in.value[from]);
  out.mac[at] = static_cast<W>(out.mac[at] + in.mac[from]);
}

template <class W>
void add_chosen(ShareSpan<W> out, i64 at, ShareView<W> in, i64 from, u8 choice) {
  const W mask = static_cast<W>(0 - W{choice});
  out.value[at] = static_cast<W>(out.value[at] + (in.value[from] & mask));
  out.mac[at] = static_cast<W>(out.mac[at] + (in.mac[from] & mask));
}

template <class W>
void copy(ShareSpan<W> out, i64 at, ShareView<W> in, i64 from) {
  out.value[at] = in.value[from];
  out.mac[at] = in.mac[from];
}

}  // namespace

template <class R>
int bit_triple_bucket(i64 n) {
  return leaky_bucket_size(n, kSecurityBits<R>);
}

template <class R>
void generate_bit_triples(Session<R>& session, ot::Party& party, BitSpan<R> x, BitSpan<R> y,
                          BitSpan<R> z) {
  const i64 n = x.size();
  expect(y.size() == n && z.size() == n, "bit triples: lengths differ");
  expect(kFewestBuckets <= n && n <= kMostBitTriples, "bit triples: wrong size of a batch");
  const int bucket = bit_triple_bucket<R>(n);
  const i64 leaky = n * bucket;
  BitShares<R> leaky_x(leaky), leaky_y(leaky), leaky_z(leaky);
  shares_of_both<R>(session, authenticate_random_bits(session, party, leaky, Correlations::dropped),
                    leaky_y);
  leaky_products<R>(session, party, leaky_y, leaky_x, leaky_z);

  // Bucket i is order[i], order[n + i], order[2n + i], ...
  const std::vector<u32> order = random_permutation(session.toss(), leaky);
  for (i64 i = 0; i < n; ++i) {
    copy<typename R::BitWord>(x, i, leaky_x, order[i]);
    copy<typename R::BitWord>(y, i, leaky_y, order[i]);
    copy<typename R::BitWord>(z, i, leaky_z, order[i]);
  }
  std::vector<u8> difference(n);
  for (int b = 1; b < bucket; ++b) {
    const u32* members = order.data() + b * n;
    const BitSpan<R> slots = begin_opening_bits(session, n);
    for (i64 i = 0; i < n; ++i) {
      copy<typename R::BitWord>(slots, i, y, i);
      add_to<typename R::BitWord>(slots, i, leaky_y, members[i]);
    }
    finish_opening_bits(session, slots, difference);
    for (i64 i = 0; i < n; ++i) {
      add_to<typename R::BitWord>(x, i, leaky_x, members[i]);
      add_to<typename R::BitWord>(z, i, leaky_z, members[i]);
      add_chosen<typename R::BitWord>(z, i, leaky_x, members[i], difference[i]);
    }
  }
  check_bit_macs<R>(session, {x, z}, "bit triples");
  check(session);
}

template <class R>
void cost_generate_bit_triples(CostMeter& meter, i64 n) {
  const int bucket = bit_triple_bucket<R>(n);
  const i64 leaky = n * bucket;
  cost_authenticate_random_bits<R>(meter, leaky);
  meter.reserve(leaky, leaky);
  for (i64 first = 0; first < leaky; first += kChunk) {
    const i64 count = std::min(kChunk, leaky - first);
    meter.draw(0, count);
    meter.draw(1, count);
    const i64 bytes = packed_bytes(kWords * count, R::s);
    meter.exchange(bytes, bytes);
  }
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  for (int b = 1; b < bucket; ++b) {
    cost_open_bits<R>(meter, n);
  }
  cost_check_bit_macs<R>(meter);
  cost_check<R>(meter);
}

#define PRIVML_INSTANTIATE(R)                                                            \
  template int bit_triple_bucket<R>(i64);                                                \
  template void generate_bit_triples<R>(Session<R>&, ot::Party&, BitSpan<R>, BitSpan<R>, \
                                        BitSpan<R>);                                     \
  template void cost_generate_bit_triples<R>(CostMeter&, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
