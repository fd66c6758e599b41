// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/authentication.h"

#include "base/error.h"
#include "spdz2k/vole/silent_vole.h"

namespace privml::spdz2k {
namespace {

template <class R>
constexpr std::array<TreeShape, 2> kShapes{kKeyShape<R>, kPoolShape<R>};

template <class R>
WipedVector<u8> key_bits(typename R::Word alpha, crypto::Prg& prg) {
  WipedVector<u8> bits(R::s + kPoolShape<R>.bits());
  for (int i = 0; i < R::s; ++i) bits[i] = static_cast<u8>(alpha >> i & 1);
  prg.fill_bits({bits.data() + R::s, bits.size() - R::s});
  return bits;
}

// sum over i < n of factors[i] * words[i], and words[n], the mask.
template <class W, class F>
W combine(const std::vector<F>& factors, const W* words, i64 n) {
  W sum = words[n];
  for (i64 i = 0; i < n; ++i) sum += product(W(factors[i]), words[i]);
  return sum;
}

template <class W, class F>
W combine(const std::vector<F>& factors, const std::vector<F>& bit_factors,
          const Columns<W>& columns, i64 n) {
  W sum(0);
  for (size_t h = 0; h < bit_factors.size(); ++h) {
    sum += product(W(bit_factors[h]), combine(factors, columns[static_cast<int>(h)], n));
  }
  return sum;
}

// Random products with the keys, to be corrected to those of a vector.
template <class R>
struct SourceDraw {
  SourceDraw() = default;
  SourceDraw(i64 mine, i64 theirs) : u(mine), v(mine), m(theirs) {}
  WipedVector<Wide<R>> u, v, m;
};

template <class R, class W>
W reduce(const Wide<R>& word) {
  if constexpr (std::is_same_v<W, Wide<R>>) {
    return word;
  } else {
    return narrow<R>(word);
  }
}

template <class R, class W>
void write_correction(net::Channel& channel, const SourceDraw<R>& drawn, const WipedVector<W>& x,
                      WipedVector<W>& v) {
  WipedVector<W> correction(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    correction[i] = static_cast<W>(x[i] - reduce<R, W>(drawn.u[i]));
    v[i] = reduce<R, W>(drawn.v[i]);
  }
  write_column(channel, correction.data(), std::ssize(x), kModulusBits<R, W>);
}

template <class R, class W>
void read_correction(net::Channel& channel, const SourceDraw<R>& drawn, typename R::Word key,
                     WipedVector<W>& m) {
  const W alpha = static_cast<W>(key);
  read_column(channel, m.data(), std::ssize(m), kModulusBits<R, W>);
  for (size_t i = 0; i < m.size(); ++i) {
    m[i] = static_cast<W>(product(alpha, m[i]) + reduce<R, W>(drawn.m[i]));
  }
}

// Drops the mask's product.
template <class W>
void drop_last(Columns<W>& columns) {
  const i64 n = columns.count - 1, bits = std::ssize(columns.words) / columns.count;
  for (int h = 1; h < bits; ++h) {
    std::copy(columns[h], columns[h] + n, columns.words.data() + h * n);
  }
  columns.count = n;
  columns.words.resize(bits * n);
}

}  // namespace

template <class R>
Authentication<R>::Authentication(Session<R>& session, ot::Party& party)
    : session_(session), party_(party), key_(key_bits<R>(session.alpha(), party.prg)) {
  expect(&session.channel == &party.channel, "authentication: the session is the party's");
  try {
    seeds_ = make_seed_trees(party, kShapes<R>, key_);
  } catch (const SecurityAbort& error) {
    session_.abort(error.what());
  }
}

template <class R>
void Authentication<R>::renew_pool() {
  session_.require_alive();
  session_.prg.fill_bits({key_.data() + R::s, key_.size() - R::s});
  try {
    seeds_[1] = std::move(make_seed_trees(party_, {&kPoolShape<R>, 1}, pool())[0]);
  } catch (const SecurityAbort& error) {
    session_.abort(error.what());
  }
}

template <class R>
template <class W>
crypto::Block Authentication<R>::run(std::span<const W> mine, std::span<W> my_macs,
                                     std::span<W> their_macs, Columns<W>* by_peer_pool,
                                     Columns<W>* by_own_pool) {
  using Factor = typename R::BitWord;  // s bits
  constexpr int bits = kModulusBits<R, W>;
  expect(mine.size() == my_macs.size(), "authenticate: a MAC per word");
  session_.require_alive();
  const i64 n = std::ssize(mine), peers = std::ssize(their_macs);
  net::Channel& channel = session_.channel;
  WipedVector<W> x(n > 0 ? n + 1 : 0), v(x.size()), m(peers > 0 ? peers + 1 : 0);
  if (n > 0) {
    std::copy(mine.begin(), mine.end(), x.begin());
    session_.prg.fill_bytes(bytes_of(std::span<W>(&x[n], 1)));
  }
  // Everything is written before anything is read.
  SourceDraw<R> drawn;
  if (source_) {
    drawn = SourceDraw<R>(std::ssize(x), std::ssize(m));
    source_->draw(drawn.u, drawn.v, drawn.m);
    write_correction<R, W>(channel, drawn, x, v);
  } else if (n > 0) {
    vector_times_key<W>(seeds_[0].peer_key, channel, bits, x, v);
  }
  if (n > 0 && by_peer_pool) {
    *by_peer_pool = vector_times_bits<W>(seeds_[1].peer_key, channel, bits, x);
  }
  if (source_) {
    read_correction<R, W>(channel, drawn, session_.alpha(), m);
  } else if (peers > 0) {
    key_times_vector<W>(seeds_[0].own_key, channel, bits, {key_.data(), R::s}, m);
  }
  if (peers > 0 && by_own_pool) {
    *by_own_pool = bits_times_vector<W>(seeds_[1].own_key, channel, bits, pool(), peers + 1);
  }

  const crypto::Block seed = session_.toss();
  std::vector<Factor> chi(std::max(n, peers)), xi(by_own_pool ? kPoolShape<R>.bits() : 0);
  crypto::Prg challenge(seed);
  challenge.fill_bytes(bytes_of(std::span<Factor>(chi)));
  challenge.fill_bytes(bytes_of(std::span<Factor>(xi)));
  if (n > 0) {
    std::array<W, 3> shown{combine(chi, x.data(), n), combine(chi, v.data(), n), W(0)};
    if (by_peer_pool) shown[2] = combine(chi, xi, *by_peer_pool, n);
    write_column(channel, shown.data(), by_peer_pool ? 3 : 2, bits);
  }
  const W alpha = static_cast<W>(session_.alpha());
  if (peers > 0) {
    std::array<W, 3> shown;
    read_column(channel, shown.data(), by_own_pool ? 3 : 2, bits);
    bool valid = equal_modulo(combine(chi, m.data(), peers),
                              static_cast<W>(product(alpha, shown[0]) + shown[1]), bits);
    if (by_own_pool) {
      W key(0);
      for (size_t h = 0; h < xi.size(); ++h) key += product(W(xi[h]), W(pool()[h]));
      valid &= equal_modulo(combine(chi, xi, *by_own_pool, peers),
                            static_cast<W>(product(key, shown[0]) + shown[2]), bits);
    }
    if (!valid) {
      session_.abort("authentication: the peer's words do not match its corrections");
    }
  }
  for (i64 i = 0; i < n; ++i) my_macs[i] = static_cast<W>(product(alpha, x[i]) - v[i]);
  std::copy(m.begin(), m.begin() + peers, their_macs.begin());
  if (n > 0 && by_peer_pool) drop_last(*by_peer_pool);
  if (peers > 0 && by_own_pool) drop_last(*by_own_pool);
  return challenge.next_block();
}

template <class R>
template <class W>
crypto::Block Authentication<R>::authenticate(std::span<const W> mine, std::span<W> my_macs,
                                              std::span<W> their_macs) {
  return run<W>(mine, my_macs, their_macs, nullptr, nullptr);
}

template <class R>
crypto::Block Authentication<R>::authenticate(std::span<const Wide<R>> mine,
                                              std::span<Wide<R>> my_macs,
                                              std::span<Wide<R>> their_macs,
                                              Columns<Wide<R>>& mine_by_peer_pool,
                                              Columns<Wide<R>>& theirs_by_own_pool) {
  return run<Wide<R>>(mine, my_macs, their_macs, &mine_by_peer_pool, &theirs_by_own_pool);
}

template <class R>
Columns<typename R::Word> Authentication<R>::send_to_pool(std::span<const typename R::Word> x) {
  return vector_times_bits<typename R::Word>(seeds_[1].peer_key, session_.channel, kNarrowBits<R>,
                                             x);
}

template <class R>
Columns<typename R::Word> Authentication<R>::receive_by_pool(i64 n) {
  return bits_times_vector<typename R::Word>(seeds_[1].own_key, session_.channel, kNarrowBits<R>,
                                             pool(), n);
}

template <class R>
void cost_authentication_setup(ot::CostMeter& meter) {
  cost_seed_trees(meter, kShapes<R>);
}

template <class R>
void cost_renew_pool(ot::CostMeter& meter) {
  cost_seed_trees(meter, {&kPoolShape<R>, 1});
}

template <class R>
void cost_authenticate(ot::CostMeter& meter, std::array<i64, 2> n, int bits, bool by_pool,
                       SilentVoleMeter* voles) {
  std::array<i64, 2> corrections{}, shown{};
  if (voles) cost_silent_vole<R>(meter, *voles, {n[0] + (n[0] > 0), n[1] + (n[1] > 0)});
  for (int rank : {0, 1}) {
    if (n[rank] == 0) continue;
    corrections[rank] = voles ? column_bytes(n[rank] + 1, bits)
                              : key_product_bytes(kKeyShape<R>, bits, n[rank] + 1);
    if (by_pool) corrections[rank] += bit_product_bytes(kPoolShape<R>, bits, n[rank] + 1);
    shown[rank] = column_bytes(by_pool ? 3 : 2, bits);
  }
  meter.exchange(corrections[0], corrections[1]);
  meter.exchange(kCoinTossBytes, kCoinTossBytes);
  meter.exchange(shown[0], shown[1]);
}

#define PRIVML_INSTANTIATE(R)                                                       \
  template class Authentication<R>;                                                 \
  template crypto::Block Authentication<R>::authenticate<R::Word>(                  \
      std::span<const R::Word>, std::span<R::Word>, std::span<R::Word>);            \
  template crypto::Block Authentication<R>::authenticate<Wide<R>>(                  \
      std::span<const Wide<R>>, std::span<Wide<R>>, std::span<Wide<R>>);            \
  template void cost_authentication_setup<R>(ot::CostMeter&);                       \
  template void cost_renew_pool<R>(ot::CostMeter&);                                 \
  template void cost_authenticate<R>(ot::CostMeter&, std::array<i64, 2>, int, bool, \
                                     SilentVoleMeter*);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
