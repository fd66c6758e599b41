// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/vole/silent_vole.h"

#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/square.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/testing/preprocessing.h"
#include "spdz2k/vole/proven_tree.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class SilentVoleTest : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(SilentVoleTest, Rings);

template <class R>
struct Drawn {
  std::vector<Wide<R>> u, v, m;
  Drawn() = default;
  Drawn(i64 mine, i64 theirs) : u(mine), v(mine), m(theirs) {}
};

template <class R>
bool relation_holds(const Drawn<R>& owner, const Drawn<R>& key_side, int rank) {
  const Wide<R> alpha = static_cast<Wide<R>>(ideal_key<R>(kSeed, rank));
  bool right = owner.u.size() == key_side.m.size();
  for (size_t i = 0; right && i < owner.u.size(); ++i) {
    right = equal_modulo(static_cast<Wide<R>>(product(alpha, owner.u[i]) + owner.v[i]),
                         key_side.m[i], kWideBits<R>);
  }
  return right;
}

// Two iterations of one direction and one of the other; the second spends outputs of the first.
TYPED_TEST(SilentVoleTest, CorrelationsAndCostsHold) {
  using R = TypeParam;
  const std::array<i64, 2> n{kMadeVoles + 1000, 777};
  const ot::OtConfig config = malicious_config();
  Both<Drawn<R>> drawn{Drawn<R>(n[0], n[1]), Drawn<R>(n[1], n[0])};
  const auto record = run_generator<R>(config, [&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    Drawn<R>& mine = drawn[authentication.session().rank];
    voles.draw(mine.u, mine.v, mine.m);
  });
  EXPECT_TRUE(relation_holds<R>(drawn[0], drawn[1], 1));
  EXPECT_TRUE(relation_holds<R>(drawn[1], drawn[0], 0));
  // u is random: about as many words have their lowest bit set as not, and none comes twice.
  i64 odd = 0;
  for (const auto& word : drawn[0].u) odd += detail::get_limb(word, 0) & 1;
  EXPECT_NEAR(static_cast<double>(odd) / static_cast<double>(n[0]), 0.5, 0.01);
  if (R::k > 8) {
    std::vector<u64> limbs;
    for (const auto& word : drawn[0].u) limbs.push_back(detail::get_limb(word, 0));
    std::sort(limbs.begin(), limbs.end());
    EXPECT_EQ(std::adjacent_find(limbs.begin(), limbs.end()), limbs.end());
  }
  expect_generator_cost<R>(config, record, [&](ot::CostMeter& meter) {
    SilentVoleMeter voles;
    cost_silent_vole_setup<R>(meter);
    cost_silent_vole<R>(meter, voles, n);
  });
}

TYPED_TEST(SilentVoleTest, GeneratorsAndCostsHold) {
  using R = TypeParam;
  constexpr i64 n = 300;
  const ot::OtConfig config = malicious_config();
  Both<WordShares<R>> a{WordShares<R>(n), WordShares<R>(n)}, b = a, c = a, root = a, square = a,
                                                             mask = a, random = a;
  WipedVector<u64> clear(n);
  const auto record = run_generator<R>(config, [&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    const int rank = authentication.session().rank;
    generate_triples<R>(authentication, a[rank], b[rank], c[rank]);
    generate_squares<R>(authentication, root[rank], square[rank]);
    generate_masks<R>(authentication, 0, mask[rank],
                      rank == 0 ? std::span<u64>(clear) : std::span<u64>());
    generate_randoms<R>(authentication, random[rank]);
  });
  const Words x = reconstruct<R>(a, R::k), y = reconstruct<R>(b, R::k), z = reconstruct<R>(c, R::k),
              u = reconstruct<R>(root, R::k), w = reconstruct<R>(square, R::k);
  for (i64 i = 0; i < n; ++i) {
    EXPECT_EQ(low_bits(x[i] * y[i], R::k), z[i]);
    EXPECT_EQ(low_bits(u[i] * u[i], R::k), w[i]);
  }
  EXPECT_EQ(reconstruct<R>(mask, R::k), Words(clear.begin(), clear.end()));
  reconstruct<R>(random, R::k);
  expect_generator_cost<R>(config, record, [&](ot::CostMeter& meter) {
    SilentVoleMeter voles;
    cost_silent_vole_setup<R>(meter);
    cost_triples<R>(meter, n, &voles);
    cost_squares<R>(meter, n, &voles);
    cost_masks<R>(meter, 0, n, &voles);
    cost_randoms<R>(meter, n, &voles);
  });
}

// With silent OT and silent VOLE a triple takes a fifth of the published protocol's bytes, all
// iterations included.
template <class R>
void expect_a_fifth() {
  ot::OtConfig config = malicious_config("silent");
  ot::CostMeter meter(ot::rcot_cost(config));
  SilentVoleMeter voles;
  constexpr i64 n = i64{1} << 18;
  cost_triples<R>(meter, n, &voles);
  EXPECT_LE(5 * 8 * meter.bytes[0], n * kPublishedTripleBits<R>);
}
TEST(SilentVoleCost, AFifthOfThePublishedTriple) {
  expect_a_fifth<Ring64>();
  expect_a_fifth<Ring32>();
}

// Flips in what an iteration sends: the peer aborts or the correlations are right.
TEST(SilentVoleAttack, FlippedBits) {
  using R = Ring32;
  const ot::OtConfig config = malicious_config("ideal");
  Both<Drawn<R>> drawn{Drawn<R>(50, 50), Drawn<R>(50, 50)};
  i64 before = 0;
  const auto work = with_authentication<R>([&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    Drawn<R>& mine = drawn[authentication.session().rank];
    voles.draw(mine.u, mine.v, mine.m);
    authentication.session().toss();  // opens the last commitment
  });
  const auto set_up = with_authentication<R>(
      [](Authentication<R>& authentication) { SilentVole<R> voles(authentication); });
  before = std::ssize(ot::testing::run_tampered(config, 0, {}, set_up).message_bytes);
  for (const int dishonest : {0, 1}) {
    const auto clean = ot::testing::run_tampered(config, dishonest, {}, work);
    ASSERT_FALSE(clean.detected());
    const i64 messages = std::ssize(clean.message_bytes);
    ASSERT_GE(messages - before, 4);
    // The last message of the set-up is longer by what follows it without a read between.
    for (i64 message = before - 1; message < messages; message += kMessageStep) {
      const i64 bits = 8 * clean.message_bytes[message];
      int detected = 0;
      for (const i64 bit : {bits / 3, bits - 8 * kCoinTossBytes - 300}) {
        if (bit < 0) continue;
        const auto run =
            ot::testing::run_tampered(config, dishonest, net::testing::Flip{message, bit}, work);
        EXPECT_TRUE(run.flipped);
        if (run.detected()) {
          ++detected;
        } else {
          EXPECT_TRUE(relation_holds<R>(drawn[0], drawn[1], 1));
          EXPECT_TRUE(relation_holds<R>(drawn[1], drawn[0], 0));
        }
      }
      EXPECT_GT(detected, 0) << "party " << dishonest << ", message " << message << " of "
                             << messages;
    }
  }
}

// A correction word of a tree that is wrong by 2^(k+2s-1): noticed if chi is odd at the owner's
// place, else it is missing in the dishonest party's m of that place, and nothing else is wrong.
TEST(SilentVoleAttack, TheTopBitOfACorrectionIsAGuessAtOneBit) {
  using R = Ring32;
  using W = Wide<R>;
  constexpr int cheat = 1, attacks = 12;
  constexpr i64 word = column_bytes(1, kWideBits<R>),
                tree = proven_tree_bytes(kRingLpn.depth) + word;
  const ot::OtConfig config = malicious_config("ideal");
  Drawn<R> owner(kMadeVoles, 0), key_side(0, kMadeVoles);
  const auto work = with_authentication<R>([&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    Drawn<R>& mine = authentication.session().rank == cheat ? key_side : owner;
    voles.draw(mine.u, mine.v, mine.m);
  });
  const auto set_up = with_authentication<R>(
      [](Authentication<R>& authentication) { SilentVole<R> voles(authentication); });
  const auto before = ot::testing::run_tampered(config, cheat, {}, set_up).message_bytes;
  const auto clean = ot::testing::run_tampered(config, cheat, {}, work).message_bytes;
  // The trees begin the first message that is not the set-up's, or follow in its last one.
  i64 message = std::ssize(before) - 1, start = before.back();
  if (clean[message] == start) ++message, start = 0;
  ASSERT_GE(clean[message] - start, kRingLpn.trees * tree);
  const W alpha = static_cast<W>(ideal_key<R>(kSeed, cheat)), top = W(1) << (kWideBits<R> - 1);
  int noticed = 0;
  for (i64 attack = 0; attack < attacks; ++attack) {
    const i64 bit = 8 * (start + (attack + 1) * tree - word) + kWideBits<R> - 1;
    const auto run =
        ot::testing::run_tampered(config, cheat, net::testing::Flip{message, bit}, work);
    ASSERT_TRUE(run.flipped);
    noticed += run.detected();
    if (run.detected()) continue;
    i64 wrong = 0;
    for (i64 i = 0; i < kMadeVoles; ++i) {
      const W expected = static_cast<W>(product(alpha, owner.u[i]) + owner.v[i]);
      if (equal_modulo(expected, key_side.m[i], kWideBits<R>)) continue;
      EXPECT_TRUE(equal_modulo(static_cast<W>(expected + top), key_side.m[i], kWideBits<R>));
      ++wrong;
    }
    EXPECT_EQ(wrong, 1);
  }
  EXPECT_GT(noticed, 0);
  EXPECT_LT(noticed, attacks);
}

// Flips in what is corrected by silent VOLE: words of masks and of a triple's five.
TEST(SilentVoleAttack, FlippedCorrections) {
  using R = Ring32;
  constexpr i64 n = 20;
  const ot::OtConfig config = malicious_config("ideal");
  Both<WordShares<R>> mask{WordShares<R>(n), WordShares<R>(n)}, a = mask, b = mask, c = mask;
  WipedVector<u64> clear(n);
  i64 before = 0;
  const auto begin = [](Authentication<R>& authentication, SilentVole<R>& voles) {
    std::vector<Wide<R>> u(1), v(1), m(1);
    voles.draw(u, v, m);  // of the first iteration, which FlippedBits attacks
    authentication.session().toss();
  };
  const auto set_up = with_authentication<R>([&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    begin(authentication, voles);
  });
  const auto work = with_authentication<R>([&](Authentication<R>& authentication) {
    SilentVole<R> voles(authentication);
    begin(authentication, voles);
    const int rank = authentication.session().rank;
    generate_masks<R>(authentication, 0, mask[rank],
                      rank == 0 ? std::span<u64>(clear) : std::span<u64>());
    generate_triples<R>(authentication, a[rank], b[rank], c[rank]);
    authentication.session().toss();
  });
  const auto expect_right = [&] {
    EXPECT_EQ(reconstruct<R>(mask, R::k), Words(clear.begin(), clear.end()));
    const Words x = reconstruct<R>(a, R::k), y = reconstruct<R>(b, R::k),
                z = reconstruct<R>(c, R::k);
    for (i64 i = 0; i < n; ++i) EXPECT_EQ(low_bits(x[i] * y[i], R::k), z[i]);
  };
  for (const int dishonest : {0, 1}) {
    before = std::ssize(ot::testing::run_tampered(config, dishonest, {}, set_up).message_bytes);
    const auto clean = ot::testing::run_tampered(config, dishonest, {}, work);
    ASSERT_FALSE(clean.detected());
    expect_right();
    const i64 messages = std::ssize(clean.message_bytes);
    ASSERT_GE(messages - before, 6);
    i64 detected = 0;
    // The parties take turns: the odd messages of one, the even ones of the other.
    for (i64 message = before + dishonest; message < messages; message += 2 * kMessageStep) {
      const i64 bit = 8 * clean.message_bytes[message] / 2;
      const auto run =
          ot::testing::run_tampered(config, dishonest, net::testing::Flip{message, bit}, work);
      EXPECT_TRUE(run.flipped);
      SCOPED_TRACE(::testing::Message() << "party " << dishonest << ", message " << message);
      detected += run.detected();
      if (!run.detected()) expect_right();
    }
    EXPECT_GE(detected, std::max<i64>((messages - before) / (4 * kMessageStep), 1));
  }
}

// Pins what a session with silent VOLE sends on fixed seeds.
TEST(SilentVoleWireTrace, GeneratorsOnIt) {
  using R = Ring64;
  const auto record =
      run_generator<R>(malicious_config("ideal"), [&](Authentication<R>& authentication) {
        SilentVole<R> voles(authentication);
        WordShares<R> a(10), b(10), c(10);
        generate_triples<R>(authentication, a, b, c);
        generate_squares<R>(authentication, a, b);
        generate_randoms<R>(authentication, c);
      });
  EXPECT_EQ(record.sent_hash[0].substr(0, 8) + record.sent_hash[1].substr(0, 8),
            "fea4370a9d25da43");
}

}  // namespace
}  // namespace privml::spdz2k::testing
