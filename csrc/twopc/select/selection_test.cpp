// SPDX-License-Identifier: Apache-2.0
// conversion.h, multiplex.h and private_product.h.
#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/compare/maximum.h"
#include "twopc/product/private_product.h"
#include "twopc/select/multiplex.h"
#include "twopc/testing/parties.h"
#include "twopc/width/conversion.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

const std::vector<int> kWidths{1, 2, 3, 5, 8, 31, 32, 33, 37, 63, 64};

// SoftSpoken OT too for one width.
std::vector<OtKind> kinds(int width) {
  if (width == 37) return {{true, 0}, {false, 4}};
  return {{true, 0}};
}

TEST(Conversion, BitsToRing) {
  for (int width : kWidths) {
    for (const OtKind& kind : kinds(width)) {
      const i64 n = 301;
      const Bits bits = random_bits(n, width);
      const Both<Bits> shares = share_bits(bits, 7);
      Both<Words> out{Words(n), Words(n)};
      run_parties(kind, [&](ot::Party& p) { bits_to_ring(p, shares[p.rank], width, out[p.rank]); });
      const Words result = reconstruct(out, width);
      for (i64 i = 0; i < n; ++i) ASSERT_EQ(result[i], bits[i]) << "width " << width;
    }
  }
}

TEST(Multiplex, OneValue) {
  for (int width : kWidths) {
    for (const OtKind& kind : kinds(width)) {
      const i64 n = 301;
      const Bits bits = random_bits(n, width);
      const Words values = random_words(n, width);
      const Both<Bits> bit_shares = share_bits(bits, 7);
      Both<Words> shares = share(values, width, 8), out{Words(n), Words(n)};
      add_noise_above(shares, width);
      run_parties(kind, [&](ot::Party& p) {
        multiplex(p, bit_shares[p.rank], shares[p.rank], width, out[p.rank]);
      });
      const Words result = reconstruct(out, width);
      for (i64 i = 0; i < n; ++i)
        ASSERT_EQ(result[i], bits[i] ? values[i] : 0) << "width " << width;
    }
  }
}

TEST(Multiplex, SeveralValuesUnderOneBit) {
  for (i64 length : {2, 3, 17}) {
    for (int width : {5, 32, 64}) {
      const i64 n = 101;
      const Bits bits = random_bits(n, width);
      const Words values = random_words(n * length, width);
      const Both<Bits> bit_shares = share_bits(bits, 7);
      const Both<Words> shares = share(values, width, 8);
      Both<Words> out{Words(n * length), Words(n * length)};
      run_parties({}, [&](ot::Party& p) {
        multiplex_vectors(p, bit_shares[p.rank], shares[p.rank], length, width, out[p.rank]);
      });
      const Words result = reconstruct(out, width);
      for (i64 i = 0; i < n * length; ++i) {
        ASSERT_EQ(result[i], bits[i / length] ? values[i] : 0) << "width " << width;
      }
    }
  }
}

TEST(PrivateProduct, AllPairs) {
  for (int width : kWidths) {
    Both<Bits> x;
    for (int i = 0; i < 4 * 50; ++i) {
      x[0].push_back(i & 1);
      x[1].push_back(i >> 1 & 1);
    }
    const i64 n = std::ssize(x[0]);
    Both<Words> out{Words(n), Words(n)};
    run_parties({}, [&](ot::Party& p) {
      PrivateProduct product;
      write_private_product(p, x[p.rank], width, product);
      read_private_product(p, product, out[p.rank]);
    });
    const Words result = reconstruct(out, width);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(result[i], x[0][i] & x[1][i]) << "width " << width;
  }
}

TEST(Selection, CostEqualsTheLedger) {
  const Both<Bits> shares = share_bits(random_bits(kLargestN));
  const Both<Words> words = share(random_words(3 * kLargestN, 32), 32);
  Both<Words> result{Words(3 * kLargestN), Words(3 * kLargestN)};
  expect_costs_equal([&](i64 n) {
    std::vector<CostRow> rows;
    const auto bits = [&, n](ot::Party& p) { return std::span(shares[p.rank]).first(n); };
    const auto in = [&](ot::Party& p, i64 m) { return std::span(words[p.rank]).first(m); };
    const auto out = [&](ot::Party& p, i64 m) { return std::span(result[p.rank]).first(m); };
    for (int width : {1, 13, 32}) {
      rows.push_back({[=](ot::Party& p) { bits_to_ring(p, bits(p), width, out(p, n)); },
                      [=](ot::CostMeter& m) { cost_bits_to_ring(m, n, width); }});
      rows.push_back({[=](ot::Party& p) { multiplex(p, bits(p), in(p, n), width, out(p, n)); },
                      [=](ot::CostMeter& m) { cost_multiplex(m, n, width); }});
      rows.push_back({[=](ot::Party& p) {
                        multiplex_vectors(p, bits(p), in(p, 3 * n), 3, width, out(p, 3 * n));
                      },
                      [=](ot::CostMeter& m) { cost_multiplex_vectors(m, n, 3, width); }});
    }
    return rows;
  });
}

TEST(Selection, CostsRefuseWhatTheProtocolsRefuse) {
  ot::CostMeter meter(ot::rcot_cost({}));
  EXPECT_THROW(cost_multiplex_vectors(meter, 3, 0, 8), InvalidArgument);
  EXPECT_THROW(cost_multiplex_vectors(meter, 3, 1, 65), InvalidArgument);
  EXPECT_THROW(cost_maximum_windows(meter, 3, 0, 8), InvalidArgument);
  EXPECT_THROW(cost_argmax(meter, 3, 0, 8), InvalidArgument);
}

TEST(Selection, RefusesBadArguments) {
  run_parties({}, [](ot::Party& party) {
    const Bits bits(3);
    const Words values(3);
    Words out(3), wrong(2);
    EXPECT_THROW(bits_to_ring(party, bits, 0, out), InvalidArgument);
    EXPECT_THROW(bits_to_ring(party, bits, 65, out), InvalidArgument);
    EXPECT_THROW(bits_to_ring(party, bits, 8, wrong), InvalidArgument);
    EXPECT_THROW(multiplex(party, bits, values, 65, out), InvalidArgument);
    EXPECT_THROW(multiplex(party, bits, values, 8, wrong), InvalidArgument);
    EXPECT_THROW(multiplex_vectors(party, bits, values, 2, 8, out), InvalidArgument);
    EXPECT_THROW(multiplex_vectors(party, bits, {}, 0, 8, {}), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
