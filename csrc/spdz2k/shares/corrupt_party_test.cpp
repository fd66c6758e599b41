// SPDX-License-Identifier: Apache-2.0
// A dishonest party that keeps to the messages but computes with wrong shares or MAC shares of
// correlations: the honest party aborts before anything is revealed.
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/matrix_product.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/online/truncation.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/tampered_run.h"

namespace privml::spdz2k::testing {
namespace {

// What a dishonest party changes: its shares of what it draws first of that kind.
enum class Wrong {
  nothing,
  mask,
  random,
  triple_factor,
  triple_product,
  square,
  bit,
  bit_triple,
  edabit_number,
  edabit_bit,
  matrix_factor,
  matrix_product,
};

// Draws from the ideal supply, and adds `error` to the shares, or to the MAC shares.
template <class R>
class WrongSupply final : public Supply<R> {
 public:
  using Word = typename R::Word;
  using BitWord = typename R::BitWord;

  WrongSupply(Supply<R>& from, Wrong wrong, Word error, bool in_mac)
      : from_(from), wrong_(wrong), error_(error), in_mac_(in_mac) {}
  void reserve(const Demand& demand) override { from_.reserve(demand); }

 private:
  template <class W>
  void spoil(Wrong wrong, ShareSpan<W> shares) {
    if (wrong != wrong_ || shares.size() == 0) return;
    for (W& word : in_mac_ ? shares.mac : shares.value) word += static_cast<W>(error_);
    wrong_ = Wrong::nothing;
  }
  void draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) override {
    from_.masks(owner, r, clear);
    spoil(Wrong::mask, r);
  }
  void draw_randoms(WordSpan<R> r) override {
    from_.randoms(r);
    spoil(Wrong::random, r);
  }
  void draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) override {
    from_.triples(a, b, c);
    spoil(Wrong::triple_factor, b);
    spoil(Wrong::triple_product, c);
  }
  void draw_squares(WordSpan<R> a, WordSpan<R> square) override {
    from_.squares(a, square);
    spoil(Wrong::square, square);
  }
  void draw_bits(WordSpan<R> b) override {
    from_.bits(b);
    spoil(Wrong::bit, b);
  }
  void draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) override {
    from_.bit_triples(x, y, z);
    spoil(Wrong::bit_triple, z);
  }
  void draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) override {
    from_.edabits(width, r, bits);
    spoil(Wrong::edabit_number, r);
    spoil(Wrong::edabit_bit, bits);
  }
  void draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                           WordSpan<R> c) override {
    from_.matrix_triples(shape, n, a, b, c);
    spoil(Wrong::matrix_factor, a);
    spoil(Wrong::matrix_product, c);
  }

  Supply<R>& from_;
  Wrong wrong_;
  Word error_;
  bool in_mac_;
};

// `body` reveals something; returns whether the honest party aborted.
template <class R>
bool aborts(int dishonest, Wrong wrong, typename R::Word error, bool in_mac,
            const std::function<void(Session<R>&)>& body) {
  const auto run = run_tampered<R>(dishonest, {}, [&](Session<R>& session) {
    WrongSupply<R> supply(session.supply(), session.rank == dishonest ? wrong : Wrong::nothing,
                          error, in_mac);
    session.set_supply(supply);
    body(session);
  });
  EXPECT_NE(run.aborted, run.completed);
  return run.aborted;
}

// Uses every kind of correlation, and reveals what comes out.
template <class R>
void use_everything(Session<R>& session) {
  const Words clear = random_words(64, R::k - 4);
  WordShares<R> x(64), y(64), z(64), out(64);
  for (const int owner : {0, 1}) {
    const bool mine = owner == session.rank;
    input<R>(session, owner, mine ? std::span<const u64>(clear) : std::span<const u64>(),
             owner == 0 ? x : y);
  }
  multiply<R>(session, x, y, z);
  square<R>(session, z, z);
  multiply_matrices<R>(session, x, y, {8, 8, 8}, 1, out);
  add(z, out, out);
  less_than<R>(session, x, y, R::k - 1, Range::restricted, z);
  add(z, out, out);
  truncate<R>(session, x, {R::k, 4, TruncationKind::exact_bounded}, z);
  add(z, out, out);
  Words revealed(64);
  reveal<R>(session, out, R::k, kBothParties, revealed);
}

template <class R>
void expect_wrong_correlations_abort() {
  using Word = typename R::Word;
  const Word half = Word{1} << (R::k - 1);
  for (const int dishonest : {0, 1}) {
    EXPECT_FALSE(aborts<R>(dishonest, Wrong::nothing, 1, false, use_everything<R>));
    for (int wrong = 1; wrong <= static_cast<int>(Wrong::matrix_product); ++wrong) {
      const Wrong kind = static_cast<Wrong>(wrong);
      for (const bool in_mac : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << "party " << dishonest << ", kind " << wrong << (in_mac ? ", MAC" : ""));
        EXPECT_TRUE(aborts<R>(dishonest, kind, 1, in_mac, use_everything<R>));
        // The upper part of a shared bit or of a check's mask is no value.
        if (kind == Wrong::random || kind == Wrong::bit_triple || kind == Wrong::edabit_bit)
          continue;
        EXPECT_TRUE(aborts<R>(dishonest, kind, half, in_mac, use_everything<R>));
      }
    }
  }
}

TEST(Spdz2kCorruptParty, WrongCorrelations) {
  expect_wrong_correlations_abort<Ring32>();
  expect_wrong_correlations_abort<Ring64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
