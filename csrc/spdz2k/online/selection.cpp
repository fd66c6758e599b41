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
  explicit Factors(i64 n) : n(n) {}
  void append(WordView<R> d, WordView<R> y) {
    for (auto [from, to] : {std::pair{d, &left}, {y, &right}}) {
      const i64 size = to->size();
      to->resize(size + n);
      for_each_share(kSame, to->part(size, n), from);
    }
  }
  i64 n;
  WordShares<R> left, right;
};

template <class R>
class Tournament {
 public:
  Tournament(Session<R>& session, WordView<R> x, i64 count, i64 n, int width, Winner kind)
      : session_(session), n_(n), width_(width), kind_(kind), values_(x.size()) {
    for_each_share(kSame, values_, x);
    for (i64 j = 0; j < count; ++j) entrants_.push_back({j, 1});
    if (kind != Winner::none) {
      carried_.resize(x.size());
      std::fill(carried_.value.begin(), carried_.value.end(), 0);
      std::fill(carried_.mac.begin(), carried_.mac.end(), 0);
      for (i64 j = 0; j < count; ++j) {
        const WordSpan<R> plane = carried_.part(j * n, n);
        const u64 start = kind == Winner::index ? j : 1;
        add_public(session.rank, session.alpha(), plane, start, plane);
      }
    }
  }

  void play() {
    while (entrants_.size() > 1) play_round();
  }
  WordView<R> value() const { return values_.part(0, n_); }
  const WordShares<R>& carried() const { return carried_; }

 private:
  WordSpan<R> value_of(const Entrant& e) { return values_.part(e.first * n_, n_); }
  WordSpan<R> carried_by(i64 j) { return carried_.part(j * n_, n_); }

  void play_round() {
    const i64 matches = std::ssize(entrants_) / 2;
    WordShares<R> left(matches * n_), right(matches * n_), wins(matches * n_);
    for (i64 m = 0; m < matches; ++m) {
      for_each_share(kSame, left.part(m * n_, n_), value_of(entrants_[2 * m]));
      for_each_share(kSame, right.part(m * n_, n_), value_of(entrants_[2 * m + 1]));
    }
    less_than<R>(session_, right, left, width_, Range::restricted, wins);
    Factors<R> factors(n_);
    WordShares<R> difference(n_);
    for (i64 m = 0; m < matches; ++m) {
      const Entrant &a = entrants_[2 * m], &b = entrants_[2 * m + 1];
      const WordView<R> win = wins.part(m * n_, n_);
      subtract(value_of(a), value_of(b), difference);
      factors.append(win, difference);
      for_each_product(a, b, [&](WordView<R> y) { factors.append(win, y); });
    }
    WordShares<R> products(factors.left.size());
    multiply<R>(session_, factors.left, factors.right, products);
    std::vector<Entrant> next;
    i64 at = 0;
    const auto take = [&] { return WordView<R>(products.part(n_ * at++, n_)); };
    for (i64 m = 0; m < matches; ++m) {
      const Entrant &a = entrants_[2 * m], &b = entrants_[2 * m + 1];
      add(value_of(b), take(), value_of(a));
      carry_along(a, b, wins.part(m * n_, n_), take);
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
      WordShares<R> difference(n_);
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

  Session<R>& session_;
  i64 n_;
  int width_;
  Winner kind_;
  WordShares<R> values_, carried_;
  std::vector<Entrant> entrants_;
};

}  // namespace

template <class R>
void select(Session<R>& session, WordView<R> choice, WordView<R> x, WordView<R> y,
            WordSpan<R> out) {
  const i64 n = out.size();
  expect(choice.size() == n && x.size() == n && y.size() == n, "select: lengths differ");
  WordShares<R> difference(n);
  subtract(x, y, difference);
  multiply<R>(session, choice, difference, difference);
  add(difference, y, out);
}

template <class R>
void cost_select(CostMeter& meter, i64 n) {
  cost_multiply<R>(meter, n);
}

template <class R>
void relu(Session<R>& session, WordView<R> x, int width, WordSpan<R> out) {
  const i64 n = out.size();
  expect(x.size() == n, "relu: lengths differ");
  BitShares<R> bits(n);
  most_significant_bit<R>(session, x, width, bits);
  add_public(session.rank, session.bit_alpha(), bits, u64{1}, bits);
  WordShares<R> positive(n);
  bits_to_ring<R>(session, bits, positive);
  multiply<R>(session, positive, x, out);
}

template <class R>
void cost_relu(CostMeter& meter, i64 n, int width) {
  cost_most_significant_bit<R>(meter, n, width);
  cost_bits_to_ring<R>(meter, n);
  cost_multiply<R>(meter, n);
}

template <class R>
void maximum(Session<R>& session, WordView<R> x, i64 count, int width, WordSpan<R> maximum,
             Winner kind, WordSpan<R> winner) {
  const i64 n = maximum.size();
  expect(count >= 1 && x.size() == count * n, "maximum: lengths differ");
  const i64 carried = kind == Winner::none ? 0 : kind == Winner::index ? n : count * n;
  expect(winner.size() == carried, "maximum: the winner's length is wrong");
  Tournament<R> tournament(session, x, count, n, width, kind);
  tournament.play();
  for_each_share(kSame, maximum, tournament.value());
  for_each_share(kSame, winner, tournament.carried());
}

template <class R>
void cost_maximum(CostMeter& meter, i64 n, i64 count, int width, Winner kind) {
  std::vector<i64> entrants(count, 1);
  while (entrants.size() > 1) {
    std::vector<i64> next;
    i64 products = 0;
    for (std::size_t j = 0; j + 1 < entrants.size(); j += 2) {
      const i64 a = entrants[j], b = entrants[j + 1];
      products += 1;
      if (kind == Winner::index && a + b > 2) products += 1;
      if (kind == Winner::one_hot) products += (a > 1 ? a : 0) + (b > 1 ? b : 0);
      next.push_back(a + b);
    }
    if (entrants.size() % 2 == 1) next.push_back(entrants.back());
    cost_less_than<R>(meter, std::ssize(entrants) / 2 * n, width, Range::restricted);
    cost_multiply<R>(meter, products * n);
    entrants = std::move(next);
  }
}

#define PRIVML_INSTANTIATE(R)                                                                     \
  template void select<R>(Session<R>&, WordView<R>, WordView<R>, WordView<R>, WordSpan<R>);       \
  template void cost_select<R>(CostMeter&, i64);                                                  \
  template void relu<R>(Session<R>&, WordView<R>, int, WordSpan<R>);                              \
  template void cost_relu<R>(CostMeter&, i64, int);                                               \
  template void maximum<R>(Session<R>&, WordView<R>, i64, int, WordSpan<R>, Winner, WordSpan<R>); \
  template void cost_maximum<R>(CostMeter&, i64, i64, int, Winner);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
