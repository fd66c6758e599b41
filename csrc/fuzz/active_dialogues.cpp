// SPDX-License-Identifier: Apache-2.0
// The actively secure engine: online protocols on an ideal supply, and the making of correlations
// on ideal transfers. Its smallest ring, so that inputs stay short; two larger ones beside it.
#include <array>

#include "fuzz/targets.h"
#include "ot/setup.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/online/multiply.h"
#include "spdz2k/online/selection.h"
#include "spdz2k/online/truncation.h"
#include "spdz2k/preprocessing/bit_triples.h"
#include "spdz2k/preprocessing/bucketing.h"
#include "spdz2k/preprocessing/edabits.h"
#include "spdz2k/preprocessing/ideal.h"
#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/preprocessing.h"
#include "spdz2k/preprocessing/random_bit.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/input_output.h"

namespace privml::fuzz {
namespace {

using namespace spdz2k;

constexpr i64 kCount = 5;
constexpr crypto::Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};

template <class R>
using Body = std::function<void(Session<R>&, WordShares<R>&)>;

// `body` on inputs of both parties, a check, and a value revealed to each.
template <class R>
Dialogue online(Body<R> body) {
  return Dialogue([body = std::move(body)](net::Channel& channel, int rank) {
    crypto::Prg prg({static_cast<u64>(rank), 0x13198a2e});
    const auto supply = make_ideal_supply<R>(kSeed, rank);
    Session<R> session(rank, channel, prg, ideal_key<R>(kSeed, rank));
    session.set_supply(*supply);
    WordShares<R> x(kCount), other(kCount);
    const std::vector<u64> mine(kCount, 3 + static_cast<u64>(rank)), none;
    input<R>(session, 0, rank == 0 ? mine : none, x);
    input<R>(session, 1, rank == 1 ? mine : none, other);
    body(session, x);
    std::vector<u64> out(kCount), nothing;
    for (const int to : {0, 1}) reveal<R>(session, x, R::k, to, rank == to ? out : nothing);
    channel.flush();
  });
}

// `body` with the session of a party whose transfers are ideal.
template <class R>
Dialogue preparing(std::function<void(Authentication<R>&)> body) {
  return Dialogue([body = std::move(body)](net::Channel& channel, int rank) {
    const auto resources =
        ot::make_party_resources(channel, rank, {"ideal", 0, "malicious", kSeed});
    ot::Party& party = resources->party();
    Session<R> session(rank, channel, party.prg, ideal_key<R>(kSeed, rank));
    const auto supply = make_ideal_supply<R>(kSeed, rank);
    session.set_supply(*supply);
    Authentication<R> authentication(session, party);
    body(authentication);
    check(session);
    channel.flush();
  });
}

template <class R>
Dialogue arithmetic() {
  return online<R>([](Session<R>& s, WordShares<R>& x) {
    multiply<R>(s, x, x, x);
    square<R>(s, x, x);
    truncate<R>(s, x, {R::k, 2, TruncationKind::bounded}, x);
  });
}

template <class R>
Dialogue comparisons() {
  return online<R>([](Session<R>& s, WordShares<R>& x) {
    relu<R>(s, x, R::k, x);
    WordShares<R> zero(kCount);
    equal_zero<R>(s, x, R::k, zero);
    truncate<R>(s, x, {R::k, 2, TruncationKind::exact}, x);
  });
}

template <class R>
Dialogue triples() {
  return preparing<R>([](Authentication<R>& authentication) {
    WordShares<R> a(3), b(3), c(3), bits(3);
    generate_triples<R>(authentication, a, b, c);
    generate_bits<R>(authentication, bits);
  });
}

template <class R>
Dialogue masks() {
  return preparing<R>([](Authentication<R>& authentication) {
    WordShares<R> r(3);
    std::vector<u64> clear(3), none;
    for (const int owner : {0, 1})
      generate_masks<R>(authentication, owner, r,
                        authentication.session().rank == owner ? clear : none);
    generate_randoms<R>(authentication, r);
  });
}

template <class R>
Dialogue bits() {
  return preparing<R>([](Authentication<R>& authentication) {
    BitShares<R> x(kFewestBuckets), y(kFewestBuckets), z(kFewestBuckets), planes(12);
    WordShares<R> r(3);
    generate_bit_triples<R>(authentication.session(), authentication.party(), x, y, z);
    for (const EdabitMethod method : {EdabitMethod::summed, EdabitMethod::composed})
      generate_edabits<R>(authentication.session(), authentication.party(), method, 4, r, planes);
  });
}

}  // namespace

std::span<const Dialogue> active_online() {
  static const std::array made{arithmetic<Ring8>(), comparisons<Ring8>(), arithmetic<Ring64>(),
                               comparisons<Ring32>()};
  return made;
}

std::span<const Dialogue> active_preprocessing() {
  static const std::array made{masks<Ring8>(), triples<Ring8>(), bits<Ring8>(), masks<Ring64>()};
  return made;
}

}  // namespace privml::fuzz
