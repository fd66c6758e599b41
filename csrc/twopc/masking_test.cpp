// SPDX-License-Identifier: Apache-2.0
// What parties send, and the shares they are left with, look uniform for constant inputs: every bit
// of every digit of every instance has its own fresh mask.
#include <gtest/gtest.h>

#include <cmath>

#include "base/pack.h"
#include "twopc/compare/digit_transfer.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/compare/relu.h"
#include "twopc/product/lattice_matmul.h"
#include "twopc/product/wide_matmul.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/testing/parties.h"
#include "twopc/width/conversion.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

constexpr i64 kInstances = 4096;

// Keeps what is written.
class TapChannel final : public net::Channel {
 public:
  explicit TapChannel(net::Channel& inner) : inner_(inner) {}
  void write(Bytes bytes) override {
    sent.insert(sent.end(), bytes.begin(), bytes.end());
    inner_.write(bytes);
  }
  void read(MutableBytes bytes) override { inner_.read(bytes); }
  void flush() override { inner_.flush(); }
  net::Traffic traffic() const override { return inner_.traffic(); }
  void set_depth(i64 depth) override { inner_.set_depth(depth); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  void close() override { inner_.close(); }

  std::vector<u8> sent;

 private:
  net::Channel& inner_;
};

// What parties 0 and 1 send in `body`, without preprocessing.
Both<std::vector<u8>> sent_in(const std::function<void(ot::Party&)>& body) {
  Both<std::vector<u8>> sent;
  run_parties({}, [&](ot::Party& party) {
    TapChannel tap(party.channel);
    ot::Party tapped{party.rank, tap,        party.sender,           party.receiver,
                     party.prg,  party.hash, party.correlation_bits, party.ledger};
    body(tapped);
    sent[party.rank] = tap.sent;
  });
  return sent;
}

// Six standard deviations from one half.
void expect_balanced(i64 ones, i64 count) {
  const double deviation = (static_cast<double>(ones) - 0.5 * static_cast<double>(count)) /
                           std::sqrt(0.25 * static_cast<double>(count));
  EXPECT_LT(std::abs(deviation), 6) << ones << " ones of " << count;
}

// Bits are balanced, and so are their differences at every distance up to `distances`: a mask that
// is missing, constant, or shared by two positions would show.
void expect_uniform(const std::vector<u8>& bits, i64 distances) {
  const i64 n = std::ssize(bits);
  ASSERT_GT(n, 64);
  for (i64 distance = 0; distance <= distances; ++distance) {
    SCOPED_TRACE(::testing::Message() << "distance " << distance);
    i64 ones = 0;
    for (i64 i = 0; i + distance < n; ++i)
      ones += distance == 0 ? bits[i] : bits[i] ^ bits[i + distance];
    expect_balanced(ones, n - distance);
  }
}

std::vector<u8> bits_of(const std::vector<u8>& bytes) {
  std::vector<u8> bits(8 * bytes.size());
  unpack(bytes.data(), std::ssize(bits), 1, bits.data());
  return bits;
}

// One digit after the other: the words sent for it and the shares that both sides keep.
TEST(Masking, EveryDigitOfTheLeaves) {
  for (const ComparisonShape& shape :
       {ComparisonShape{32}, ComparisonShape{31}, ComparisonShape{36}, ComparisonShape{64},
        ComparisonShape{7, 0, true, false}, ComparisonShape{30, 13, true}}) {
    const ComparisonPlan plan = plan_comparison(shape, {31});
    const i64 digits = std::ssize(plan.digits);
    Both<std::vector<u8>> greater, equal;
    const auto sent = sent_in([&](ot::Party& party) {
      const int r = party.rank;
      const Words constant(kInstances, 0x5a5a5a5a5a5a5a5a & low_mask(shape.bits));
      greater[r].assign(digits * kInstances, 0);
      equal[r].assign(digits * kInstances, 0);
      const DigitPlanes planes{greater[r].data(), equal[r].data(), kInstances};
      if (r == 0) return send_digits(party, plan, constant, planes);
      choose_digits(party, plan, constant, planes);
      receive_digits(party, plan, constant, planes);
    });
    expect_uniform(bits_of(sent[1]), 2 * shape.bits);
    const i64 tile = 64;  // digits stand one after the other within a tile of instances
    const u8* at = sent[0].data();
    std::vector<std::vector<u8>> words(digits);
    for (i64 begin = 0; begin < kInstances; begin += tile) {
      for (i64 d = 0; d < digits; ++d) {
        const i64 bytes = packed_bytes(tile, plan.digits[d].word_bits());
        words[d].insert(words[d].end(), at, at + bytes);
        at += bytes;
      }
    }
    for (i64 d = 0; d < digits; ++d) {
      SCOPED_TRACE(::testing::Message() << shape.bits << " bits, digit " << d);
      const std::vector<u8> bits = bits_of(words[d]);
      const i64 width = plan.digits[d].word_bits();
      expect_uniform(bits, 2 * width);
      for (i64 slot = 0; slot < width; ++slot) {
        std::vector<u8> one;
        for (i64 i = slot; i < std::ssize(bits); i += width) one.push_back(bits[i]);
        expect_uniform(one, 2);
      }
      for (int r : {0, 1}) {
        const auto plane = [&](const std::vector<u8>& planes, i64 digit) {
          return std::vector<u8>(planes.begin() + digit * kInstances,
                                 planes.begin() + (digit + 1) * kInstances);
        };
        const auto expect_unlike = [&](std::vector<u8> a, const std::vector<u8>& b) {
          for (i64 i = 0; i < kInstances; ++i) a[i] ^= b[i];
          expect_uniform(a, 2);
        };
        const std::vector<u8> g = plane(greater[r], d), e = plane(equal[r], d);
        const Digit& digit = plan.digits[d];
        if (digit.greater) expect_uniform(g, 4);
        if (digit.equality) expect_uniform(e, 4);
        if (digit.greater && digit.equality) expect_unlike(g, e);
        if (d > 0 && digit.greater) expect_unlike(g, plane(greater[r], d - 1));
      }
    }
  }
}

void lattice_row(ot::Party& party, const Words& x, Words& out) {
  const Words w(party.rank == 0 ? 1 : 0, 3);
  const OwnedWeights weights{{0, 8, true}, w};
  ProductHalves halves = matmul_halves(weights, 1, 1, 32);
  lattice_matmul(party, halves, {kShared, 32}, x, weights, kInstances, out);
}

void prepared_row(ot::Party& party, const Words& x, Words& out) {
  const Words w(party.rank == 0 ? 1 : 0, 3);
  const OwnedWeights weights{{0, 8, true}, w};
  ProductHalves halves = matmul_halves(weights, 1, 1, 32);
  prepared_matmul(party, prepare_matmul(party, halves, weights, kInstances), {kShared, 32}, x,
                  weights, out);
}

void wide_row(ot::Party& party, const Words& x, bool keeps_last_bit, Words& out) {
  WideSession session;
  const WideProduct product{1,  {kInstances, 1, 1}, {kShared, 32}, {kShared, 32},
                            32, keeps_last_bit};
  wide_matmul(party, session, product, x, Words(1), out);
}

TEST(Masking, WholeProtocolsOnConstants) {
  struct Named {
    const char* name;
    std::function<void(ot::Party&, const Words&, const Bits&, Words&, Bits&)> run;
  };
  const std::vector<Named> protocols{
      {"millionaires", [](auto& p, auto& x, auto&, auto&, auto& b) { millionaires(p, x, 32, b); }},
      {"millionaires over a slow link",
       [](auto& p, auto& x, auto&, auto&, auto& b) {
         p.chunk_factor = 8;
         millionaires(p, x, 32, b);
       }},
      {"equal", [](auto& p, auto& x, auto&, auto&, auto& b) { equal(p, x, 32, b); }},
      {"and_bits", [](auto& p, auto&, auto& a, auto&, auto& b) { and_bits(p, a, a, b); }},
      {"and_private", [](auto& p, auto&, auto& a, auto&, auto& b) { and_private(p, a, b); }},
      {"bits_to_ring", [](auto& p, auto&, auto& a, auto& y, auto&) { bits_to_ring(p, a, 32, y); }},
      {"multiplex", [](auto& p, auto& x, auto& a, auto& y, auto&) { multiplex(p, a, x, 32, y); }},
      {"relu", [](auto& p, auto& x, auto&, auto& y, auto& b) { relu(p, x, 32, y, b); }},
      {"truncate",
       [](auto& p, auto& x, auto&, auto& y, auto&) { truncate_arithmetic(p, x, 32, 12, y); }},
      {"nonnegative",
       [](auto& p, auto& x, auto&, auto& y, auto&) { truncate_nonnegative(p, x, 32, 12, y); }},
      {"maximum", [](auto& p, auto& x, auto&, auto& y, auto&) { maximum(p, x, x, 32, y); }},
      {"maximum over a slow link",
       [](auto& p, auto&, auto&, auto& y, auto&) {
         p.chunk_factor = 32;
         maximum_windows(p, Words(4 * kInstances), 4, 32, y);
       }},
      {"truncate_reduce over a slow link",
       [](auto& p, auto& x, auto&, auto& y, auto&) {
         p.chunk_factor = 32;
         truncate_reduce(p, x, 40, 8, y);
       }},
      {"nonzero bit",
       [](auto& p, auto& x, auto&, auto&, auto& b) {
         Bits one_hot(8 * kInstances);
         most_significant_nonzero_bit(p, x, 8, one_hot);
         std::copy_n(one_hot.begin(), kInstances, b.begin());
       }},
      {"lattice", [](auto& p, auto& x, auto&, auto& y, auto&) { lattice_row(p, x, y); }},
      {"wide", [](auto& p, auto& x, auto&, auto& y, auto&) { wide_row(p, x, false, y); }},
      {"wide and its last bit",
       [](auto& p, auto& x, auto&, auto& y, auto&) { wide_row(p, x, true, y); }},
      {"prepared", [](auto& p, auto& x, auto&, auto& y, auto&) { prepared_row(p, x, y); }},
  };
  for (const Named& one : protocols) {
    SCOPED_TRACE(one.name);
    Both<Words> out;
    Both<Bits> bits;
    const auto sent = sent_in([&](ot::Party& party) {
      const Words x(kInstances, 0);
      const Bits a(kInstances, 0);
      out[party.rank].resize(kInstances);
      bits[party.rank].resize(kInstances, 2);
      one.run(party, x, a, out[party.rank], bits[party.rank]);
    });
    for (int r : {0, 1}) {
      expect_uniform(bits_of(sent[r]), 64);
      if (bits[r][0] != 2) expect_uniform(bits[r], 8);
      if (out[r][0] == 0) continue;
      std::vector<u8> shares;
      for (u64 word : out[r]) {
        for (int b = 0; b < 32; ++b) shares.push_back(word >> b & 1);
      }
      expect_uniform(shares, 64);
    }
  }
}

}  // namespace
}  // namespace privml::twopc
