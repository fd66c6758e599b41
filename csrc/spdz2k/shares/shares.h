// SPDX-License-Identifier: Apache-2.0
// Arrays of authenticated shares, views of them, and local operations on them.
#pragma once

#include <type_traits>

#include "spdz2k/shares/recycled.h"
#include "spdz2k/shares/ring.h"

namespace privml::spdz2k {

template <class W>
struct ShareView {
  std::span<const W> value, mac;
  i64 size() const { return static_cast<i64>(value.size()); }
  ShareView part(i64 first, i64 count) const {
    return {value.subspan(first, count), mac.subspan(first, count)};
  }
};

template <class W>
struct ShareSpan {
  std::span<W> value, mac;
  i64 size() const { return static_cast<i64>(value.size()); }
  ShareSpan part(i64 first, i64 count) const {
    return {value.subspan(first, count), mac.subspan(first, count)};
  }
  operator ShareView<W>() const { return {value, mac}; }
};

// New elements are not initialised; memory is wiped before it leaves the thread (recycled.h).
template <class W>
struct Shares {
  RecycledVector<W> value, mac;

  Shares() = default;
  explicit Shares(i64 n) { resize(n); }
  void resize(i64 n) {
    value.resize(n);
    mac.resize(n);
  }
  i64 size() const { return static_cast<i64>(value.size()); }
  ShareSpan<W> part(i64 first, i64 count) { return ShareSpan<W>(*this).part(first, count); }
  ShareView<W> part(i64 first, i64 count) const { return ShareView<W>(*this).part(first, count); }
  operator ShareSpan<W>() { return {value, mac}; }
  operator ShareView<W>() const { return {value, mac}; }
};

template <class R>
using WordShares = Shares<typename R::Word>;
template <class R>
using WordView = ShareView<typename R::Word>;
template <class R>
using WordSpan = ShareSpan<typename R::Word>;
template <class R>
using BitShares = Shares<typename R::BitWord>;
template <class R>
using BitView = ShareView<typename R::BitWord>;
template <class R>
using BitSpan = ShareSpan<typename R::BitWord>;

// out[i] = function(a[i], ...) for shares and for MACs; arrays of one length, out may be an input.
template <class Function, class Out, class... In>
void for_each_share(Function&& function, Out&& out, const In&... in) {
  using W = std::remove_cvref_t<decltype(out.value[0])>;
  const i64 n = out.size();
  const auto run = [&](W* to, const auto*... from) {
    for (i64 i = 0; i < n; ++i) to[i] = static_cast<W>(function(from[i]...));
  };
  run(out.value.data(), in.value.data()...);
  run(out.mac.data(), in.mac.data()...);
}

template <class A, class B, class Out>
void add(const A& a, const B& b, Out&& out) {
  for_each_share([](auto x, auto y) { return x + y; }, out, a, b);
}

template <class A, class B, class Out>
void subtract(const A& a, const B& b, Out&& out) {
  for_each_share([](auto x, auto y) { return x - y; }, out, a, b);
}

template <class A, class Out>
void negate(const A& a, Out&& out) {
  for_each_share([](auto x) { return -x; }, out, a);
}

template <class A, class W, class Out>
void multiply_public(const A& a, W factor, Out&& out) {
  using Word = std::remove_cvref_t<decltype(out.value[0])>;
  const Word f = static_cast<Word>(factor);
  for_each_share([f](Word x) { return product(x, f); }, out, a);
}

template <class A, class W, class Out>
void multiply_public(const A& a, std::span<const W> factors, Out&& out) {
  using Word = std::remove_cvref_t<decltype(out.value[0])>;
  const i64 n = out.size();
  for (i64 i = 0; i < n; ++i) {
    const Word factor = static_cast<Word>(factors[i]);
    out.value[i] = product(Word{a.value[i]}, factor);
    out.mac[i] = product(Word{a.mac[i]}, factor);
  }
}

// out[i] = a[i] + constants[i]: party 0 adds it to its share, every party its part of the key times
// it to the MAC.
template <class A, class K, class W, class Out>
void add_public(int rank, K alpha, const A& a, std::span<const W> constants, Out&& out) {
  using Word = std::remove_cvref_t<decltype(out.value[0])>;
  const Word to_share = rank == 0, to_mac = static_cast<Word>(alpha);
  const i64 n = out.size();
  for (i64 i = 0; i < n; ++i) {
    const Word constant = static_cast<Word>(constants[i]);
    out.value[i] = static_cast<Word>(a.value[i] + product(constant, to_share));
    out.mac[i] = static_cast<Word>(a.mac[i] + product(constant, to_mac));
  }
}

template <class A, class K, class Out>
void add_public(int rank, K alpha, const A& a, u64 constant, Out&& out) {
  using Word = std::remove_cvref_t<decltype(out.value[0])>;
  const Word value = rank == 0 ? static_cast<Word>(constant) : Word{0};
  const Word mac = product(static_cast<Word>(constant), static_cast<Word>(alpha));
  const i64 n = out.size();
  for (i64 i = 0; i < n; ++i) {
    out.value[i] = static_cast<Word>(a.value[i] + value);
    out.mac[i] = static_cast<Word>(a.mac[i] + mac);
  }
}

// The lowest bit of every value as a shared bit.
template <class A, class Out>
void to_bits(const A& a, Out&& out) {
  for_each_share([](auto x) { return x; }, out, a);
}

}  // namespace privml::spdz2k
