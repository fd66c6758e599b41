// SPDX-License-Identifier: Apache-2.0
// Pins what every online protocol sends on fixed seeds: a refactoring leaves these hashes alone, a
// change of a protocol shows here.
#include <gtest/gtest.h>

#include "spdz2k/online/bits.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/matrix_product.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/online/selection.h"
#include "spdz2k/online/truncation.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"
#include "spdz2k/testing/parties.h"

namespace privml::spdz2k::testing {
namespace {

constexpr i64 kCount = 100;
using R = Ring64;
using S = Session<R>&;
using X = const WordShares<R>&;

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, checks included.
std::string trace_of(const std::function<void(S, X, WordSpan<R>)>& protocol) {
  const auto x = share<R>(random_words(kCount, 62));
  return trace(run_parties<R>([&](S session) {
    WordShares<R> out(kCount);
    protocol(session, x[session.rank], out);
    check(session);
  }));
}

TEST(Spdz2kWireTrace, Arithmetic) {
  EXPECT_EQ(trace_of([](S s, X x, auto out) { multiply<R>(s, x, x, out); }), "482816730c551d61");
  EXPECT_EQ(trace_of([](S s, X x, auto out) { square<R>(s, x, out); }), "a551d1682b8cd19c");
  EXPECT_EQ(
      trace_of([](S s, X x, auto out) { multiply_matrices<R>(s, x, x, {10, 10, 10}, 1, out); }),
      "327cf6bb31eab24f");
  EXPECT_EQ(trace_of([](S s, X x, auto out) {
              const Words clear(s.rank == 0 ? kCount : 0, 5);
              input<R>(s, 0, clear, out);
              Words revealed(s.rank == 1 ? kCount : 0);
              reveal<R>(s, x, 40, 1, revealed);
            }),
            "76743cb83cd97166");
}

TEST(Spdz2kWireTrace, Comparisons) {
  EXPECT_EQ(trace_of([](S s, X x, auto out) { less_than<R>(s, x, x, 64, Range::restricted, out); }),
            "00731eaa22013267");
  EXPECT_EQ(trace_of([](S s, X x, auto out) { less_than<R>(s, x, x, 50, Range::full, out); }),
            "e61344b3a912a9b8");
  EXPECT_EQ(trace_of([](S s, X x, auto out) { equal_zero<R>(s, x, 64, out); }), "1f9974be64599560");
  EXPECT_EQ(trace_of([](S s, X x, auto out) { relu<R>(s, x, 64, out); }), "0e08e19fa4973e06");
  EXPECT_EQ(trace_of([](S s, X x, auto out) {
              maximum<R>(s, x, 10, 64, out.part(0, 10), Winner::one_hot, out);
            }),
            "5b868adcff36fab3");
}

TEST(Spdz2kWireTrace, Truncations) {
  EXPECT_EQ(trace_of([](S s, X x, auto out) {
              truncate<R>(s, x, {64, 16, TruncationKind::bounded}, out);
              truncate<R>(s, x, {64, 16, TruncationKind::exact}, out);
            }),
            "86ee796e3c68fe96");
}

}  // namespace
}  // namespace privml::spdz2k::testing
