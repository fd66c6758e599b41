// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/known_msb.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

u64 read(u64 word, int bits, bool is_signed) {
  return is_signed ? static_cast<u64>(to_signed(word, bits)) : word & low_mask(bits);
}

// The most significant bits of shared numbers, shared.
Both<Bits> msb_of(const Both<Words>& x, int bits) {
  Bits msb(x[0].size());
  for (std::size_t i = 0; i < msb.size(); ++i)
    msb[i] = static_cast<u8>(((x[0][i] + x[1][i]) >> (bits - 1)) & 1);
  return share_bits(msb, 5);
}

void expect_shared(Both<Words> x, int bits, int to, const OtKind& ot = {}) {
  const Words values = reconstruct(x, bits);
  const Both<Bits> msb = msb_of(x, bits);
  add_noise_above(x, bits);
  const i64 n = std::ssize(values);
  for (bool is_signed : {false, true}) {
    Both<Words> extended{Words(n), Words(n)};
    const Outcome extension = run_parties(ot, [&](ot::Party& party) {
      const int r = party.rank;
      extend_shared_msb(party, x[r], bits, msb[r], is_signed, to, extended[r]);
    });
    const Words wide = reconstruct(extended, to);
    for (i64 i = 0; i < n; ++i) {
      ASSERT_EQ(wide[i], read(values[i], bits, is_signed) & low_mask(to)) << bits << " " << to;
    }
    expect_cost_equals(extension,
                       [&](ot::CostMeter& m) { cost_extend_shared_msb(m, n, bits, to); });
  }
}

TEST(SharedMsb, AllSharesAtSmallWidths) {
  for (int bits = 1; bits <= 5; ++bits)
    for (int more = 0; more < 2 * bits; more += 2)
      expect_shared(all_share_pairs(bits), bits, bits + more);
}

// Both forms: tables where the words are narrow.
TEST(SharedMsb, RandomAtRealWidths) {
  for (const auto& [bits, to] : {std::pair{16, 32}, {32, 64}, {37, 64}, {64, 64}, {8, 64}})
    for (const OtKind& ot : {OtKind{}, OtKind{false, 1}, OtKind{false, 4}})
      expect_shared(share(random_words(500, bits), bits), bits, to, ot);
}

Both<Words> with_msb(const Both<Words>& x, int bits, u8 msb) {
  Both<Words> out;
  for (std::size_t i = 0; i < x[0].size(); ++i) {
    if (((x[0][i] + x[1][i]) >> (bits - 1) & 1) != msb) continue;
    for (int r : {0, 1}) out[r].push_back(x[r][i]);
  }
  return out;
}

void expect_public(const Both<Words>& all, int bits, int to) {
  for (u8 msb : {0, 1})
    for (bool is_signed : {false, true}) {
      Both<Words> x = with_msb(all, bits, msb);
      const Words values = reconstruct(x, bits);
      const i64 n = std::ssize(values);
      add_noise_above(x, bits);
      Both<Words> extended{Words(n), Words(n)};
      const Outcome extension = run_parties({}, [&](ot::Party& party) {
        const int r = party.rank;
        extend_known_msb(party, x[r], bits, msb, is_signed, to, extended[r]);
      });
      const Words wide = reconstruct(extended, to);
      for (i64 i = 0; i < n; ++i) {
        ASSERT_EQ(wide[i], read(values[i], bits, is_signed) & low_mask(to)) << bits << " " << to;
      }
      expect_cost_equals(extension,
                         [&](ot::CostMeter& m) { cost_extend_known_msb(m, n, bits, to); });
    }
}

TEST(KnownMsb, AllSharesAtSmallWidths) {
  for (int bits = 1; bits <= 5; ++bits)
    for (int more = 0; more < 2 * bits; more += 2)
      expect_public(all_share_pairs(bits), bits, bits + more);
}

TEST(KnownMsb, RandomAtRealWidths) {
  for (const auto& [bits, to] : {std::pair{16, 32}, {37, 64}, {64, 64}})
    expect_public(share(random_words(500, bits), bits), bits, to);
}

TEST(KnownMsb, CostsOfSeveralLengths) {
  expect_costs_equal([](i64 n) -> std::vector<CostRow> {
    std::vector<CostRow> rows;
    for (int width : {8, 40})
      rows.push_back({[=](ot::Party& p) {
                        const Words x(n, 5);
                        const Bits msb(n, 0);
                        Words out(n);
                        extend_shared_msb(p, x, 16, msb, true, 16 + width, out);
                      },
                      [=](ot::CostMeter& m) { cost_extend_shared_msb(m, n, 16, 16 + width); }});
    return rows;
  });
}

TEST(KnownMsb, RefusesBadArguments) {
  Words x(3), out(3);
  Bits two(2), three(3);
  run_parties({}, [&](ot::Party& party) {
    EXPECT_THROW(extend_shared_msb(party, x, 8, two, true, 16, out), InvalidArgument);
    EXPECT_THROW(extend_shared_msb(party, x, 8, three, true, 7, out), InvalidArgument);
    EXPECT_THROW(extend_known_msb(party, x, 8, 2, true, 16, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
