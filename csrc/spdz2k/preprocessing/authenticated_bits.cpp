// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/authenticated_bits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "ot/derive.h"
#include "spdz2k/preprocessing/bit_check.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kRows = i64{1} << 12;   // rows of T made at once
constexpr i64 kChunk = i64{1} << 17;  // bits of one exchange

// Bits that the hash drops.
template <class R>
constexpr i64 kDropped = 2 * R::s;

// The public matrix T, rows of 2s bits, in chunks of rows.
template <class R>
class PublicRows {
 public:
  static constexpr int kBytes = kDropped<R> / 8;
  explicit PublicRows(crypto::Block seed) : prg_(seed), rows_(kRows * kBytes) {}
  const u8* next(i64 count) {
    prg_.fill_bytes({rows_.data(), static_cast<std::size_t>(count * kBytes)});
    return rows_.data();
  }

 private:
  crypto::Prg prg_;
  std::vector<u8> rows_;
};

struct Add {
  template <class W>
  static W of(W a, W b) {
    return static_cast<W>(a + b);
  }
};
struct Xor {
  static crypto::Block of(crypto::Block a, crypto::Block b) { return a ^ b; }
};

// For each byte of a row the sums of the eight dropped words that its value selects.
template <class R, class Sum, class W>
class SelectedSums {
 public:
  explicit SelectedSums(const W* dropped) : sums_(PublicRows<R>::kBytes * 256) {
    for (int byte = 0; byte < PublicRows<R>::kBytes; ++byte) {
      W* table = sums_.data() + 256 * byte;
      table[0] = W{};
      for (int bit = 0; bit < 8; ++bit) {
        for (int low = 0; low < 1 << bit; ++low) {
          table[(1 << bit) + low] = Sum::of(table[low], dropped[8 * byte + bit]);
        }
      }
    }
  }
  void add_to(W* words, i64 count, const u8* rows) const {
    for (i64 i = 0; i < count; ++i, rows += PublicRows<R>::kBytes) {
      W sum = words[i];
      for (int byte = 0; byte < PublicRows<R>::kBytes; ++byte) {
        sum = Sum::of(sum, sums_[256 * byte + rows[byte]]);
      }
      words[i] = sum;
    }
  }

 private:
  WipedVector<W> sums_;
};

// v_l += sum_m T_lm v_m; the dropped bits are the last 2s.
template <class R>
void hash(AuthenticatedBits<R>& bits, i64 n, crypto::Block seed) {
  using BitWord = typename R::BitWord;
  using Words = SelectedSums<R, Add, BitWord>;
  using Blocks = SelectedSums<R, Xor, crypto::Block>;
  const Words value(bits.value.data() + n), mac(bits.mac.data() + n), key(bits.key.data() + n);
  const bool kept = !bits.own.empty();
  const AlignedVector<crypto::Block> none(kept ? 0 : kDropped<R>);
  const Blocks own(kept ? bits.own.data() + n : none.data());
  const Blocks peer(kept ? bits.peer.data() + n : none.data());
  PublicRows<R> rows(seed);
  for (i64 first = 0; first < n; first += kRows) {
    const i64 count = std::min(kRows, n - first);
    const u8* chunk = rows.next(count);
    value.add_to(bits.value.data() + first, count, chunk);
    mac.add_to(bits.mac.data() + first, count, chunk);
    key.add_to(bits.key.data() + first, count, chunk);
    if (!kept) continue;
    own.add_to(bits.own.data() + first, count, chunk);
    peer.add_to(bits.peer.data() + first, count, chunk);
  }
  bits.value.resize(n);
  bits.mac.resize(n);
  bits.key.resize(n);
  bits.own.resize(kept ? n : 0);
  bits.peer.resize(kept ? n : 0);
}

}  // namespace

template <class R>
AuthenticatedBits<R> authenticate_random_bits(Session<R>& session, ot::Party& party, i64 n,
                                              Correlations correlations) {
  using BitWord = typename R::BitWord;
  session.require_alive();
  const i64 all = n + kDropped<R>;
  const bool kept = correlations == Correlations::kept;
  AuthenticatedBits<R> bits;
  bits.value.resize(all);
  bits.mac.resize(all);
  bits.key.resize(all);
  const i64 chunk = std::min(all, kChunk);
  bits.own.resize(kept ? all : chunk);
  bits.peer.resize(kept ? all : chunk);
  ot::reserve(party, all, all);
  WipedVector<u64> alpha(chunk), pads(chunk), received(chunk);
  WipedVector<u8> choices(chunk);
  std::fill(alpha.begin(), alpha.end(), static_cast<u64>(session.bit_alpha()));
  for (i64 first = 0; first < all; first += kChunk) {
    const auto count = static_cast<std::size_t>(std::min(kChunk, all - first));
    crypto::Block* own = bits.own.data() + (kept ? first : 0);
    crypto::Block* peer = bits.peer.data() + (kept ? first : 0);
    ot::draw_as_receiver(party, own, static_cast<i64>(count));
    ot::draw_as_sender(party, peer, static_cast<i64>(count));
    for (std::size_t i = 0; i < count; ++i) choices[i] = crypto::low_bit(own[i]);
    const std::span<u64> keys = std::span(pads).first(count),
                         macs = std::span(received).first(count);
    ot::additive_send(party, peer, std::span(alpha).first(count), 1, R::s, keys);
    ot::additive_receive(party, own, std::span(choices).first(count), 1, R::s, macs);
    for (std::size_t i = 0; i < count; ++i) {
      bits.value[first + i] = choices[i];
      bits.mac[first + i] = static_cast<BitWord>(macs[i]);
      bits.key[first + i] = static_cast<BitWord>(keys[i]);
    }
  }
  if (!kept) {
    bits.own.clear();
    bits.peer.clear();
  }
  {
    BitShares<R> shares(all);
    shares_of_both(session, bits, shares);
    check_bit_macs<R>(session, {shares}, "authenticated bits");
  }
  hash(bits, n, session.toss());
  return bits;
}

template <class R>
void cost_authenticate_random_bits(CostMeter& meter, i64 n) {
  const i64 all = n + kDropped<R>;
  meter.reserve(all, all);
  for (i64 first = 0; first < all; first += kChunk) {
    const i64 count = std::min(kChunk, all - first);
    meter.draw(0, count);
    meter.draw(1, count);
    const i64 bytes = packed_bytes(count, R::s);
    meter.exchange(bytes, bytes);
  }
  cost_check_bit_macs<R>(meter);
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
}

template <class R>
void shares_of_both(const Session<R>& session, const AuthenticatedBits<R>& bits, BitSpan<R> out) {
  using BitWord = typename R::BitWord;
  const BitWord alpha = session.bit_alpha();
  for (i64 i = 0; i < out.size(); ++i) {
    out.value[i] = bits.value[i];
    const BitWord own = static_cast<BitWord>(product(alpha, bits.value[i]) + bits.mac[i]);
    out.mac[i] = static_cast<BitWord>(own + bits.key[i]);
  }
}

template <class R>
void shares_of_owner(const Session<R>& session, const AuthenticatedBits<R>& bits, int owner,
                     i64 first, BitSpan<R> out) {
  using BitWord = typename R::BitWord;
  const BitWord alpha = session.bit_alpha();
  for (i64 i = 0; i < out.size(); ++i) {
    const i64 at = first + i;
    if (owner == session.rank) {
      out.value[i] = bits.value[at];
      out.mac[i] = static_cast<BitWord>(product(alpha, bits.value[at]) + bits.mac[at]);
    } else {
      out.value[i] = 0;
      out.mac[i] = bits.key[at];
    }
  }
}

#define PRIVML_INSTANTIATE(R)                                                                  \
  template AuthenticatedBits<R> authenticate_random_bits<R>(Session<R>&, ot::Party&, i64,      \
                                                            Correlations);                     \
  template void cost_authenticate_random_bits<R>(CostMeter&, i64);                             \
  template void shares_of_both<R>(const Session<R>&, const AuthenticatedBits<R>&, BitSpan<R>); \
  template void shares_of_owner<R>(const Session<R>&, const AuthenticatedBits<R>&, int, i64,   \
                                   BitSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
