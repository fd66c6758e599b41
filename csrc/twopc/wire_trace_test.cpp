// SPDX-License-Identifier: Apache-2.0
// Pins what every protocol sends on fixed seeds: a refactoring leaves these hashes alone, a change
// of a protocol shows here.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "twopc/compare/equality.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/compare/relu.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/lookup.h"
#include "twopc/lookup/split_lookup.h"
#include "twopc/product/lattice_convolution.h"
#include "twopc/product/lattice_matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/product/packed_matmul.h"
#include "twopc/product/prepared_line.h"
#include "twopc/product/row_product.h"
#include "twopc/product/square.h"
#include "twopc/product/wide_matmul.h"
#include "twopc/product/word_product.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/testing/parties.h"
#include "twopc/width/bounded.h"
#include "twopc/width/conversion.h"
#include "twopc/width/extension.h"
#include "twopc/width/known_msb.h"
#include "twopc/width/rectified_maximum.h"
#include "twopc/width/split.h"
#include "twopc/width/truncate_by_sign.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

using testing::Bits;
using testing::Both;
using testing::Words;

constexpr i64 kCount = 100;
constexpr int kWidth = 32;

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
std::string trace(const std::function<void(ot::Party&, const Words&, const Bits&)>& protocol) {
  const Both<Words> words = testing::share(testing::random_words(kCount, kWidth - 2), kWidth);
  const Both<Bits> bits = testing::share_bits(testing::random_bits(kCount));
  const auto outcome = testing::run_parties(
      {true, 0}, [&](ot::Party& party) { protocol(party, words[party.rank], bits[party.rank]); });
  const auto& hashes = outcome.record.sent_hash;
  return hashes[0].substr(0, 8) + hashes[1].substr(0, 8);
}

TEST(WireTrace, ComparisonFamily) {
  const auto words = [](auto&& run) {
    return trace([&](ot::Party& party, const Words& x, const Bits&) {
      Words result(kCount);
      run(party, x, result);
    });
  };
  const auto bits = [](auto&& run) {
    return trace([&](ot::Party& party, const Words& x, const Bits&) {
      Bits result(kCount);
      run(party, x, result);
    });
  };
  EXPECT_EQ(bits([](auto& p, auto& x, auto& r) { millionaires(p, x, kWidth, r); }),
            "c9ba20ccd851fbae");
  EXPECT_EQ(bits([](auto& p, auto& x, auto& r) { equal_zero(p, x, kWidth, r); }),
            "67f0851a4691731d");
  EXPECT_EQ(bits([](auto& p, auto& x, auto& r) { most_significant_bit(p, x, kWidth, r); }),
            "e760a7d9f56fa334");
  EXPECT_EQ(words([](auto& p, auto& x, auto& r) { relu(p, x, kWidth, r); }), "a4874534c9aeb39c");
  EXPECT_EQ(words([](auto& p, auto& x, auto& r) { truncate_arithmetic(p, x, kWidth, 12, r); }),
            "6dbb262931ccc224");
  EXPECT_EQ(words([](auto& p, auto& x, auto& r) { truncate_reduce(p, x, kWidth, 12, r); }),
            "845375e83d56e082");
  EXPECT_EQ(words([](auto& p, auto& x, auto& r) { sign_extend(p, x, kWidth, 48, r); }),
            "fa386456d333b511");
  EXPECT_EQ(words([](auto& p, auto& x, auto& r) { maximum(p, x, x, kWidth, r); }),
            "1c02648d7dceb89e");
}

TEST(WireTrace, BitsAndTables) {
  const auto with_bits = [](auto&& run) {
    return trace([&](ot::Party& party, const Words& x, const Bits& b) { run(party, x, b); });
  };
  EXPECT_EQ(with_bits([](auto& p, auto&, auto& b) {
              Bits r(kCount);
              and_bits(p, b, b, r);
            }),
            "bec59c2a2f4ca0e1");
  EXPECT_EQ(with_bits([](auto& p, auto&, auto& b) {
              Words r(kCount);
              bits_to_ring(p, b, kWidth, r);
            }),
            "506ec88826005f81");
  EXPECT_EQ(with_bits([](auto& p, auto& x, auto& b) {
              Words r(kCount);
              multiplex(p, b, x, kWidth, r);
            }),
            "5fadf91e90e1f293");
  EXPECT_EQ(with_bits([](auto& p, auto& x, auto&) {
              Words r(kCount), table(16);
              for (u64 i = 0; i < 16; ++i) table[i] = i * i;
              lookup(p, table, x, 4, 12, r);
            }),
            "c39d9cad87419142");
  EXPECT_EQ(with_bits([](auto& p, auto& x, auto&) {
              Bits r(kCount * kWidth);
              most_significant_nonzero_bit(p, x, kWidth, r);
            }),
            "b3147afd918caab3");
}

// The forms that links of long delay prefer.
TEST(WireTrace, OverASlowLink) {
  const auto slow = [](auto&& run) {
    return trace([&](ot::Party& party, const Words& x, const Bits&) {
      party.chunk_factor = 32;
      Words result(kCount);
      run(party, x, result);
    });
  };
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) {
              maximum_windows(p, x, 10, kWidth, std::span(r).first(10));
            }),
            "02c306068977d436");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) { truncate_reduce(p, x, kWidth, 12, r); }),
            "8861b312845f2807");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) { sign_extend(p, x, kWidth, 48, r); }),
            "b568914f30922e06");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) {
              round_bounded(p, x, kWidth, u64{1} << (kWidth - 2), 7, r);
            }),
            "b8a803057ed3e7a5");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) {
              Words table(32);
              for (size_t i = 0; i < table.size(); ++i) table[i] = 3 * i;
              const int widths[] = {7};
              const std::span<const u64> tables[] = {table};
              const std::span<u64> found[] = {r};
              Words low(kCount);
              split_lookup(p, {5, 12, 20, widths}, tables, x, found, low);
            }),
            "ea1ffebb8ad1e00b");
  EXPECT_EQ(
      slow([](auto& p, auto& x, auto& r) { truncate_if_negative(p, {kWidth, 12, 9, 4}, x, x, r); }),
      "66a718fc957279f6");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) {
              rectified_maximum(p, {4, kWidth, 12, 20}, std::span(x).first(40),
                                std::span(r).first(10));
            }),
            "b6aad9480e2e1d45");
  EXPECT_EQ(slow([](auto& p, auto& x, auto& r) { truncate_rectified(p, x, kWidth, 12, 20, r); }),
            "1e03d3b295e7c02b");
  EXPECT_EQ(slow([](auto& p, auto& x, auto&) {
              Bits one_hot(kCount * kWidth);
              most_significant_nonzero_bit(p, x, kWidth, one_hot);
            }),
            "109d1d616c7352ef");
}

TEST(WireTrace, WordsAndParts) {
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits&) {
              Words r(kCount);
              linear_words(p, {{18, false}, 9, {10, true}, 27}, x, x, x, r);
            }),
            "48b141cda90736da");
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits&) {
              Words high(kCount), low(kCount);
              split_number(p, x, kWidth, 12, 40, high, low);
            }),
            "55d06c57f9cee5ac");
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits&) {
              Words r(kCount);
              PreparedLine line;
              draw_line(p, kCount, {{18, false}, 9, {10, true}, 27}, line);
              write_number(p, x, line);
              read_number(p, line);
              write_words(p, x, x, line);
              read_words(p, line);
              line_value(line, x, x, r);
            }),
            "f570b571a7470da6");
}

// Of factors whose carries take no comparison.
TEST(WireTrace, ElementwiseProducts) {
  const auto product = [](auto&& run) {
    return trace([&](ot::Party& party, const Words& x, const Bits&) {
      Words result(kCount);
      run(party, x, result);
    });
  };
  const FactorFormat bounded{kWidth + 1, true, false, false, true};
  EXPECT_EQ(product([&](auto& p, auto& x, auto& r) { multiply(p, x, bounded, x, bounded, 50, r); }),
            "41c29ad353a3f1f7");
  EXPECT_EQ(product([&](auto& p, auto& x, auto& r) { square(p, x, bounded, 50, r); }),
            "05e409f61993ff85");
  EXPECT_EQ(product([&](auto& p, auto& x, auto& r) {
              multiply_rows(p, x, bounded, {x.data(), 20}, 16, 50, r);
            }),
            "1343c49c7994a538");
}

TEST(WireTrace, KnownMostSignificantBits) {
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits& b) {
              Words r(kCount);
              extend_shared_msb(p, x, kWidth, b, true, 40, r);
            }),
            "0ca10e6b290093e1");
}

TEST(WireTrace, LatticeProducts) {
  const auto products = [](int threads) {
    return [threads](ot::Party& p, const Words& x, const Bits&) {
      const Words w(p.rank == 0 ? 300 : 0, 5);
      const OwnedWeights weights{{0, 8, true}, w};
      Words out(300);
      ProductHalves halves = matmul_halves(weights, 10, 30, kWidth);
      halves.threads = threads + p.rank;
      lattice_matmul(p, halves, {kShared, kWidth}, x, weights, 10, out);
      prepared_matmul(p, prepare_matmul(p, halves, weights, 10), {kShared, kWidth}, x, weights,
                      out);
    };
  };
  for (const int threads : {1, 2, 3}) EXPECT_EQ(trace(products(threads)), "3696896fc9ccb02f");
}

TEST(WireTrace, PackedProducts) {
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits&) {
              const Words w(p.rank == 0 ? 30 : 0, 5);
              PackingKeys keys{0, lattice::kSwitchingSets[0]};
              Words out(30);
              for (int i = 0; i < 2; ++i)
                packed_matmul(p, keys, {kShared, kWidth}, x, {0, 8, true}, w, {10, 10, 3}, kWidth,
                              out);
            }),
            "6795b48154d02c9b");
}

TEST(WireTrace, LatticeConvolutions) {
  EXPECT_EQ(trace([](ot::Party& p, const Words& x, const Bits&) {
              const ConvolutionTask task{{1, 2, 5, 10, 4, 3, 3}, {0, 8, true}, kWidth};
              const Words w(p.rank == 0 ? 72 : 0, 5);
              const KernelUse use{task, w, {}};
              Words out(task.shape.out_count());
              PackingKeys keys{0, lattice::kSwitchingSets[3]};
              lattice_convolution(p, keys, {kShared, kWidth}, x, use, out);
              prepared_convolution(p, prepare_convolution(p, keys, use), {kShared, kWidth}, x, use,
                                   out);
            }),
            "2f699f62ab086fd2");
}

TEST(WireTrace, WideProducts) {
  struct Case {
    MatrixShape shape;
    bool keeps_last_bit;
    i64 byte_price;
    const char* hash;
  };
  // Of one party that encrypts both factors, and of both parties; of several columns at once; with
  // the last bit dropped or kept.
  for (const auto& [shape, keeps, byte_price, hash] :
       {Case{{10, 5, 4}, false, 1000, "aae04d744ff810b6"},
        Case{{8, 64, 1024}, false, 1000, "2d38fe249fef5355"},
        Case{{10, 50, 40}, false, 1, "78ceceb7a0451eb7"},
        Case{{10, 5, 4}, true, 1000, "8919be0426d1efd1"},
        Case{{8, 64, 1024}, true, 1000, "47abd8dbca2c4d13"},
        Case{{10, 50, 40}, true, 1, "3ec8dcc9fa2404c1"}})
    EXPECT_EQ(trace([&](ot::Party& p, const Words& x, const Bits&) {
                const WideProduct product{1,      shape, {kShared, kWidth}, {kShared, kWidth},
                                          kWidth, keeps, byte_price};
                Words left(shape.rows * shape.inner), right(shape.inner * shape.columns);
                for (size_t i = 0; i < left.size(); ++i) left[i] = x[i % x.size()];
                for (size_t i = 0; i < right.size(); ++i) right[i] = x[i * 7 % x.size()];
                Words out(shape.rows * shape.columns);
                WideSession session;
                for (int i = 0; i < 2; ++i) wide_matmul(p, session, product, left, right, out);
              }),
              hash);
}

}  // namespace
}  // namespace privml::twopc
