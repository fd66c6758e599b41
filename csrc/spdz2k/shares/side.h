// SPDX-License-Identifier: Apache-2.0
// Where a protocol runs: at a party, or on a meter that counts its cost, so that a protocol made of
// others is written once and is its own cost function: multiply<R>(session, x, y, out), or
// multiply<R>({meter, n}, {}, {}, {}) for n numbers.
//
// On a meter arrays have no elements, and loops over them do nothing.
#pragma once

#include "base/error.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

template <class R>
class Side {
 public:
  Side(Session<R>& session) : session_(&session) {}  // a session is a side as it is
  Side(CostMeter& meter, i64 n) : meter_(&meter), n_(n) {}

  bool metering() const { return meter_ != nullptr; }
  // How many numbers a call works on whose result is `out`.
  template <class Array>
  i64 count(const Array& out) const {
    return metering() ? n_ : static_cast<i64>(out.size());
  }
  // For a protocol on n numbers within this one.
  Side of(i64 n) const {
    Side other = *this;
    other.n_ = n;
    return other;
  }

  int rank() const { return metering() ? 0 : session_->rank; }
  typename R::Word alpha() const { return metering() ? 0 : session_->alpha(); }
  typename R::BitWord bit_alpha() const { return metering() ? 0 : session_->bit_alpha(); }

  WordShares<R> words(i64 n) const { return WordShares<R>(metering() ? 0 : n); }
  BitShares<R> bits(i64 n) const { return BitShares<R>(metering() ? 0 : n); }
  RecycledVector<u64> numbers(i64 n) const { return RecycledVector<u64>(metering() ? 0 : n); }
  // array.part(first, count)
  template <class Array>
  auto part(Array&& array, i64 first, i64 count) const {
    return metering() ? array.part(0, 0) : array.part(first, count);
  }

  // What is not made of other protocols: run(session) or cost(meter).
  template <class Run, class Cost>
  void call(Run&& run, Cost&& cost) const {
    if (metering()) {
      cost(*meter_);
    } else {
      run(*session_);
    }
  }
  // Throws InvalidArgument at a party.
  void expect_lengths(bool fit, const char* message) const { expect(metering() || fit, message); }

 private:
  Session<R>* session_ = nullptr;
  CostMeter* meter_ = nullptr;
  i64 n_ = 0;
};

}  // namespace privml::spdz2k
