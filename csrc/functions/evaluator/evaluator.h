// SPDX-License-Identifier: Apache-2.0
// Evaluates the operations of a protocol at a party, or counts their cost on a meter: an algorithm
// is written once and is its own cost function.
//
// On a meter, arrays of shares are empty and local loops (local(), map()) do nothing. Independent
// operations share flights if one call takes several of them. The header of twopc named above an
// operation gives its functionality, source and cost.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "functions/evaluator/shares.h"
#include "twopc/product/addition_formula.h"
#include "twopc/product/multiplication.h"
#include "twopc/product/word_product.h"

namespace privml::functions {

// Half of 2^shift; nothing is rounded if nothing is dropped.
constexpr u64 half_of(int shift) { return shift > 0 ? u64{1} << (shift - 1) : 0; }

// Carries of shares of numbers of `bits` bits, all from one comparison.
struct Carries {
  BitShares low;       // out of the low `split` bits
  BitShares low_ones;  // whether these are all ones
  BitShares all;       // out of all bits
};

// values[i * length + j] or zero, by bits[i].
struct Selection {
  const BitShares& bits;
  const RingShares& values;
  i64 length;
  int width;
};
struct Conversion {
  const BitShares& bits;
  int width;
};
struct Selected {
  std::vector<RingShares> selections, conversions;
};

class Evaluator {
 public:
  Evaluator(ot::Party& party, i64 n) : n(n), party_(&party) {}
  Evaluator(ot::CostMeter& meter, i64 n) : n(n), meter_(&meter) {}

  const i64 n;  // numbers that this call works on

  bool first() const { return party_ != nullptr && party_->rank == 0; }
  // `value` at party 0, zero at party 1: its share of a public constant.
  u64 constant(u64 value) const { return first() ? value : 0; }

  RingShares ring(i64 count) const { return make<u64>(count); }
  BitShares bits(i64 count) const { return make<u8>(count); }
  // For i in [0, count), at a party.
  template <class Body>
  void local(i64 count, Body&& body) const {
    if (party_ == nullptr) return;
    for (i64 i = 0; i < count; ++i) body(i);
  }
  template <class Body>
  RingShares map(i64 count, int width, Body&& body) const {
    RingShares out = ring(count);
    const u64 mask = low_mask(width);
    local(count, [&](i64 i) { out[i] = body(i) & mask; });
    return out;
  }
  template <class Body>
  BitShares map_bits(i64 count, Body&& body) const {
    BitShares out = bits(count);
    local(count, [&](i64 i) { out[i] = body(i) & 1; });
    return out;
  }
  // The n words from `begin` on; and back, of which the low `width` bits count.
  RingShares load(std::span<const u64> words, i64 begin) const;
  void store(const RingShares& words, int width, std::span<u64> out, i64 begin) const;

  // bit_products.h
  BitShares and_bits(const BitShares& a, const BitShares& b);
  BitShares or_bits(const BitShares& a, const BitShares& b);
  BitShares negated(BitShares a) const;  // local
  // Local: x + c, -x.
  RingShares plus(RingShares x, u64 c) const;
  RingShares negated(const RingShares& x, int width) const;
  // comparison.h
  Carries carries(const RingShares& x, int bits, int split, bool equality);
  BitShares most_significant_bit(const RingShares& x, int bits);
  BitShares equal_zero(const RingShares& x, int bits);
  // random_selection.h: all selections and conversions in two flights.
  Selected select(std::span<const Selection> selections, std::span<const Conversion> conversions);
  Selected select(std::initializer_list<Selection> selections,
                  std::initializer_list<Conversion> conversions) {
    return select(std::span(selections.begin(), selections.size()),
                  std::span(conversions.begin(), conversions.size()));
  }
  RingShares select(const BitShares& bits, const RingShares& values, int width);
  RingShares to_ring(const BitShares& bits, int width);
  // multiplex.h
  RingShares multiplex(const BitShares& bits, const RingShares& values, int width);
  // relu.h: max(x, 0), and XOR shares of [x >= 0] if `nonnegative` takes them.
  RingShares relu(const RingShares& x, int bits, BitShares* nonnegative = nullptr);
  // truncation.h, extension.h, known_msb.h, bounded.h, multiplication.h
  RingShares truncate_reduce(const RingShares& x, int bits, int shift);
  // floor(x / 2^shift + 1/2) in Z_{2^(bits - shift)}.
  RingShares round_off(RingShares x, int bits, int shift);
  RingShares extend_signed(const RingShares& x, int from, int to);
  RingShares extend_nonnegative(const RingShares& x, int from, int to);
  RingShares extend_shared_msb(const RingShares& x, int from, const BitShares& msb, int to);
  RingShares extend_known_msb(const RingShares& x, int from, u8 msb, int to);
  RingShares extend_bounded(const RingShares& x, int bits, u64 bound, int to);
  RingShares multiply(const RingShares& x, twopc::FactorFormat x_format, const RingShares& y,
                      twopc::FactorFormat y_format, int ell);
  RingShares square(const RingShares& x, int bits);  // x in Z_{2^bits}
  // split.h
  struct Split {
    RingShares high, low;
  };
  Split split_number(const RingShares& x, int bits, int shift, int low_bits);
  // word_product.h
  RingShares word_to_ring(const RingShares& word, twopc::WordFormat format, int ell);
  RingShares multiply_word(const RingShares& factor, int factor_bits, const RingShares& u, int ell);
  RingShares linear_words(const twopc::LinearShape& shape, const RingShares& constant,
                          const RingShares& factor, const RingShares& u);
  // addition_formula.h
  RingShares addition_formula(const twopc::AdditionFormula& formula, const RingShares& x);
  // lookup.h: table of 2^index_bits entries, XOR-shared result.
  RingShares lookup_xor(std::span<const u64> table, const RingShares& index, int index_bits,
                        int width);
  // nonzero_bit.h: one_hot[i * bits + j]; none set for zero.
  BitShares most_significant_nonzero_bit(const RingShares& x, int bits);
  RingShares one_hot_select(const BitShares& one_hot, std::span<const u64> table);  // local
  // Any other operation: run(party) or cost(meter); the words that run(party, out) writes.
  template <class Run, class Cost>
  void call(Run&& run, Cost&& cost) {
    if (meter_ != nullptr) {
      cost(*meter_);
    } else {
      run(*party_);
    }
  }
  template <class Run, class Cost>
  RingShares result(i64 count, Run&& run, Cost&& cost) {
    return written<u64>(count, run, cost);
  }

 private:
  template <class T>
  Shares<T> make(i64 count) const {
    Shares<T> out;
    out.count = count;
    if (party_ != nullptr) out.values.resize(count);
    return out;
  }
  template <class T, class Run, class Cost>
  Shares<T> written(i64 count, Run&& run, Cost&& cost) {
    Shares<T> out = make<T>(count);
    if (meter_ != nullptr) {
      cost(*meter_);
    } else {
      run(*party_, std::span<T>(out.values));
    }
    return out;
  }

  ot::Party* party_ = nullptr;
  ot::CostMeter* meter_ = nullptr;
};

}  // namespace privml::functions
