// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/selection.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/multiply.h"

namespace privml::spdz2k {
namespace {

constexpr auto kSame = [](auto x) { return x; };

// The remaining candidates of the tournament, from `first` on, and what belongs to the winner of
// each group: nothing, its index, or a row for each of its candidates.
struct Entrant {
  i64 first, candidates;
};

// The products of a round: of each match's outcome d with arrays of n numbers.
template <class R>
struct Factors {
  void append(WordView<R> d, WordView<R> y) {
    ++arrays;
    for (auto [from, to] : {std::pair{d, &left}, {y, &right}}) {
      const i64 size = to->size();
      to->resize(size + from.size());
      for_each_share(kSame, to->part(size, from.size()), from);
    }
  }
  i64 arrays = 0;
  WordShares<R> left, right;
};

template <class R>
class Tournament {
 public:
  Tournament(Side<R> side, WordView<R> x, i64 count, i64 n, int width, Winner kind)
      : side_(side), n_(n), width_(width), kind_(kind), values_(x.size()) {
    for_each_share(kSame, values_, x);
    for (i64 j = 0; j < count; ++j) entrants_.push_back({j, 1});
    if (kind != Winner::none) {
      carried_.resize(x.size());
      std::fill(carried_.value.begin(), carried_.value.end(), 0);
      std::fill(carried_.mac.begin(), carried_.mac.end(), 0);
      for (i64 j = 0; j < count; ++j) {
        const WordSpan<R> plane = carried_by(j);
        const u64 start = kind == Winner::index ? j : 1;
        add_public(side.rank(), side.alpha(), plane, start, plane);
      }
    }
  }

  void play() {
    while (entrants_.size() > 1) play_round();
  }
  WordView<R> value() const { return side_.part(values_, 0, n_); }
  const WordShares<R>& carried() const { return carried_; }

 private:
  WordSpan<R> part_of(WordShares<R>& shares, i64 m) { return side_.part(shares, m * n_, n_); }
  WordSpan<R> value_of(const Entrant& e) { return side_.part(values_, e.first * n_, n_); }
  WordSpan<R> carried_by(i64 j) { return side_.part(carried_, j * n_, n_); }

  void play_round() {
    const i64 matches = std::ssize(entrants_) / 2;
    WordShares<R> left = side_.words(matches * n_), right = side_.words(matches * n_),
                  wins = side_.words(matches * n_);
    for (i64 m = 0; m < matches; ++m) {
      for_each_share(kSame, part_of(left, m), value_of(entrants_[2 * m]));
      for_each_share(kSame, part_of(right, m), value_of(entrants_[2 * m + 1]));
    }
    less_than<R>(side_.of(matches * n_), right, left, width_, Range::restricted, wins);
    Factors<R> factors;
    WordShares<R> difference = side_.words(n_);
    for (i64 m = 0; m < matches; ++m) {
      const Entrant &a = entrants_[2 * m], &b = entrants_[2 * m + 1];
      const WordView<R> win = part_of(wins, m);
      subtract(value_of(a), value_of(b), difference);
      factors.append(win, difference);
      for_each_product(a, b, [&](WordView<R> y) { factors.append(win, y); });
    }
    WordShares<R> products(factors.left.size());
    multiply<R>(side_.of(factors.arrays * n_), factors.left, factors.right, products);
    std::vector<Entrant> next;
    i64 at = 0;
    const auto take = [&] { return WordView<R>(part_of(products, at++)); };
    for (i64 m = 0; m < matches; ++m) {
      const Entrant &a = entrants_[2 * m], &b = entrants_[2 * m + 1];
      add(value_of(b), take(), value_of(a));
      carry_along(a, b, part_of(wins, m), take);
      next.push_back({a.first, a.candidates + b.candidates});
    }
    if (entrants_.size() % 2 == 1) next.push_back(entrants_.back());
    entrants_ = std::move(next);
  }

  // What a match multiplies by its outcome beside the values. Of single candidates what is carried
  // is public: nothing.
  template <class Append>
  void for_each_product(const Entrant& a, const Entrant& b, Append&& append) {
    if (kind_ == Winner::index && a.candidates + b.candidates > 2) {
      WordShares<R> difference = side_.words(n_);
      subtract(carried_by(a.first), carried_by(b.first), difference);
      append(difference);
    }
    if (kind_ == Winner::one_hot) {
      for (const Entrant& e : {a, b}) {
        if (e.candidates == 1) continue;
        for (i64 j = 0; j < e.candidates; ++j) append(carried_by(e.first + j));
      }
    }
  }

  // The left one's index lies where the winner's is kept.
  template <class Take>
  void carry_along(const Entrant& a, const Entrant& b, WordView<R> win, Take&& take) {
    if (kind_ == Winner::index) {
      if (a.candidates + b.candidates > 2) {
        add(carried_by(b.first), take(), carried_by(a.first));
      } else {
        subtract(carried_by(b.first), win, carried_by(a.first));
      }
    }
    if (kind_ != Winner::one_hot) return;
    for (const Entrant& e : {a, b}) {
      for (i64 j = 0; j < e.candidates; ++j) {
        const WordSpan<R> row = carried_by(e.first + j);
        const WordView<R> won = e.candidates == 1 ? win : take();
        if (e.first == a.first) {
          for_each_share(kSame, row, won);
        } else {
          subtract(row, won, row);
        }
      }
    }
  }

  Side<R> side_;
  i64 n_;
  int width_;
  Winner kind_;
  WordShares<R> values_, carried_;
  std::vector<Entrant> entrants_;
};

}  // namespace

template <class R>
void select(Side<R> side, WordView<R> choice, WordView<R> x, WordView<R> y, WordSpan<R> out) {
  const i64 n = side.count(out);
  side.expect_lengths(choice.size() == n && x.size() == n && y.size() == n,
                      "select: lengths differ");
  WordShares<R> difference = side.words(n);
  subtract(x, y, difference);
  multiply<R>(side, choice, difference, difference);
  add(difference, y, out);
}

template <class R>
void relu(Side<R> side, WordView<R> x, int width, WordSpan<R> out) {
  const i64 n = side.count(out);
  side.expect_lengths(x.size() == n, "relu: lengths differ");
  BitShares<R> bits = side.bits(n);
  most_significant_bit<R>(side, x, width, bits);
  add_public(side.rank(), side.bit_alpha(), bits, u64{1}, bits);
  WordShares<R> positive = side.words(n);
  bits_to_ring<R>(side, bits, positive);
  multiply<R>(side, positive, x, out);
}

template <class R>
void maximum(Side<R> side, WordView<R> x, i64 count, int width, WordSpan<R> maximum, Winner kind,
             WordSpan<R> winner) {
  const i64 n = side.count(maximum);
  const i64 carried = kind == Winner::none ? 0 : kind == Winner::index ? n : count * n;
  side.expect_lengths(count >= 1 && x.size() == count * n, "maximum: lengths differ");
  side.expect_lengths(winner.size() == carried, "maximum: the winner's length is wrong");
  Tournament<R> tournament(side, x, count, n, width, kind);
  tournament.play();
  for_each_share(kSame, maximum, tournament.value());
  for_each_share(kSame, winner, tournament.carried());
}

#define PRIVML_INSTANTIATE(R)                                                           \
  template void select<R>(Side<R>, WordView<R>, WordView<R>, WordView<R>, WordSpan<R>); \
  template void relu<R>(Side<R>, WordView<R>, int, WordSpan<R>);                        \
  template void maximum<R>(Side<R>, WordView<R>, i64, int, WordSpan<R>, Winner, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
