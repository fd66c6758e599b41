// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/authentication.h"

#include "spdz2k/testing/preprocessing.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class AuthenticationTest : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(AuthenticationTest, Rings);

// One party's view of a run.
template <class R, class W>
struct View {
  std::vector<W> mine, my_macs, their_macs;
  std::vector<u8> pool;
  Columns<Wide<R>> mine_by_peer_pool, theirs_by_own_pool;
  Columns<typename R::Word> sent, received;
  crypto::Block seed{};
};

// Random words, their number depending on the owner.
template <class R, class W>
Both<View<R, W>> prepare(std::array<i64, 2> n) {
  Both<View<R, W>> views;
  for (int rank : {0, 1}) {
    views[rank].mine.resize(n[rank]);
    views[rank].my_macs.resize(n[rank]);
    views[rank].their_macs.resize(n[1 - rank]);
    crypto::Prg({static_cast<u64>(rank), 77}).fill_bytes(bytes_of(std::span(views[rank].mine)));
  }
  return views;
}

template <class R, class W>
bool macs_hold(const Both<View<R, W>>& views, int bits = kModulusBits<R, W>) {
  const W alpha = static_cast<W>(ideal_key<R>(kSeed, 0) + ideal_key<R>(kSeed, 1));
  bool right = true;
  for (int owner : {0, 1}) {
    for (size_t i = 0; i < views[owner].mine.size(); ++i) {
      right &= equal_modulo(
          product(alpha, views[owner].mine[i]),
          static_cast<W>(views[owner].my_macs[i] + views[1 - owner].their_macs[i]), bits);
    }
  }
  return right && views[0].seed == views[1].seed;
}

template <class R, class W>
void run_plain(std::array<i64, 2> n) {
  const ot::OtConfig config = malicious_config();
  Both<View<R, W>> views = prepare<R, W>(n);
  const auto record = run_generator<R>(config, [&](Authentication<R>& authentication) {
    View<R, W>& view = views[authentication.session().rank];
    view.seed = authentication.template authenticate<W>(view.mine, view.my_macs, view.their_macs);
  });
  EXPECT_TRUE((macs_hold<R, W>(views)));
  expect_generator_cost<R>(config, record, [&](ot::CostMeter& meter) {
    cost_authenticate<R>(meter, n, kModulusBits<R, W>, false);
  });
}

TYPED_TEST(AuthenticationTest, MacsHold) {
  run_plain<TypeParam, typename TypeParam::Word>({300, 131});
  run_plain<TypeParam, Wide<TypeParam>>({65, 64});
  run_plain<TypeParam, typename TypeParam::Word>({0, 3});
}

TYPED_TEST(AuthenticationTest, PoolProductsHold) {
  using R = TypeParam;
  const std::array<i64, 2> n{70, 3};
  const ot::OtConfig config = malicious_config();
  auto views = prepare<R, Wide<R>>(n);
  const auto record = run_generator<R>(config, [&](Authentication<R>& authentication) {
    auto& view = views[authentication.session().rank];
    view.pool.assign(authentication.pool().begin(), authentication.pool().end());
    view.seed = authentication.authenticate(view.mine, view.my_macs, view.their_macs,
                                            view.mine_by_peer_pool, view.theirs_by_own_pool);
  });
  EXPECT_TRUE((macs_hold<R, Wide<R>>(views)));
  for (int owner : {0, 1}) {
    const auto& theirs = views[1 - owner];
    EXPECT_GE(std::ssize(theirs.pool), 2 * (kSecurityBits<R> + 2));
    for (int bit = 0; bit < std::ssize(theirs.pool); ++bit) {
      for (i64 i = 0; i < n[owner]; ++i) {
        const Wide<R> expected = product(views[owner].mine[i], Wide<R>(theirs.pool[bit]));
        const Wide<R> got = static_cast<Wide<R>>(theirs.theirs_by_own_pool[bit][i] -
                                                 views[owner].mine_by_peer_pool[bit][i]);
        EXPECT_TRUE(equal_modulo(got, expected, kWideBits<R>));
      }
    }
  }
  expect_generator_cost<R>(config, record, [&](ot::CostMeter& meter) {
    cost_authenticate<R>(meter, n, kWideBits<R>, true);
  });
}

// Whatever bit a party flips, the other does not end with wrong MACs in the bits that a vector is
// fixed in.
TEST(AuthenticationAttack, FlippedBits) {
  using R = Ring64;
  auto views = prepare<R, Wide<R>>({5, 5});
  const auto body = [&](Authentication<R>& authentication) {
    auto& view = views[authentication.session().rank];
    authentication.authenticate(view.mine, view.my_macs, view.their_macs, view.mine_by_peer_pool,
                                view.theirs_by_own_pool);
    authentication.session().toss();  // opens the last commitment
  };
  expect_flips_do_no_harm<R>(body, [&] { return macs_hold<R, Wide<R>>(views, kNarrowBits<R>); }, 9);
}

}  // namespace
}  // namespace privml::spdz2k::testing
