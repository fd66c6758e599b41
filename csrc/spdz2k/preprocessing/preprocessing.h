// SPDX-License-Identifier: Apache-2.0
// The supply of a real session: makes correlations in batches, keeps what is left over, and hands
// each out once.
//
// Functionality  the draws of supply.h in any number, made on demand or ahead by reserve().
//                What is handed out is wiped from the stock. Both parties plan the same batches
//                (production.h), so cost_reserve() predicts bytes, depth and correlated OTs
//                exactly. drawn() does not count the draws of batches. Every reserve()
//                that makes products takes a fresh pool (products.h).
// Stored         correlations can be taken out as bytes in one session and put into the supply of
//                another that has the same MAC key parts; they are as secret as the key, so
//                they are stored sealed and each is put in once (privml/store). A stored supply
//                makes nothing: a draw beyond its stock throws InvalidArgument.
// Cost           production.h; booked under Phase::preprocess.
#pragma once

#include <map>

#include "spdz2k/preprocessing/authentication.h"
#include "spdz2k/preprocessing/correlation_queue.h"
#include "spdz2k/preprocessing/production.h"
#include "spdz2k/vole/silent_vole.h"

namespace privml::spdz2k {

template <class R>
class PreprocessingSupply final : public Supply<R> {
 public:
  using Word = typename R::Word;

  // A stored supply if `party` is null. `silent`: a SilentVole is set up as soon as it makes
  // what is to be made cheaper. Becomes the session's supply; the session and the party must
  // outlive it.
  PreprocessingSupply(Session<R>& session, ot::Party* party, bool silent = false);

  void reserve(const Demand& demand) override;
  // What is in stock.
  Demand stock() const;

  // Moves the next n of a kind out of the stock as bytes, and bytes of such into it; fits: whether
  // `size` bytes are those of n, whatever n is.
  static i64 bytes_of(Item item, i64 n);
  static bool fits(Item item, i64 n, i64 size);
  void take_out(Item item, i64 n, MutableBytes out);
  void put_in(Item item, i64 n, Bytes in);

 private:
  void draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) override;
  void draw_randoms(WordSpan<R> r) override;
  void draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) override;
  void draw_squares(WordSpan<R> a, WordSpan<R> square) override;
  void draw_bits(WordSpan<R> b) override;
  void draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) override;
  void draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) override;
  void draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                           WordSpan<R> c) override;

  CorrelationQueue<R>& queue(Item item);
  // The queue, filled to at least n.
  CorrelationQueue<R>& stocked(Item item, i64 n);
  void make(const Step& step);
  void bits_from_own_squares(WordSpan<R> bits);

  Session<R>& session_;
  ot::Party* party_;
  bool silent_;
  std::unique_ptr<Authentication<R>> authentication_;
  std::unique_ptr<SilentVole<R>> voles_;  // ends before it
  bool pool_used_ = false;
  std::map<Item, CorrelationQueue<R>> queues_;
};

// Costs of making a supply and of reserve(): `stock` is what there is before and after. The supply
// is `silent` if the meter's correlated OTs are.
template <class R>
void cost_preprocessing_setup(CostMeter& meter);
template <class R>
void cost_reserve(CostMeter& meter, Demand& stock, const Demand& wanted);

}  // namespace privml::spdz2k
