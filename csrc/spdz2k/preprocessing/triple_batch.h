// SPDX-License-Identifier: Apache-2.0
// The steps of triple.h and the state between them, so that tests can deviate from the protocol.
#pragma once

#include "spdz2k/preprocessing/triple.h"

namespace privml::spdz2k {

template <class R>
struct TripleBatch {
  using Word = typename R::Word;

  TripleBatch(Authentication<R>& authentication, i64 n);

  // Cross products of this party's b and the peer's factors, and the other way round.
  void multiply();
  // Authenticates a and a^, then hides b by the pool and sums c and c^ up.
  void authenticate_factors();
  // Authenticates b, c and c^; returns a seed tossed after everything was fixed.
  crypto::Block authenticate_rest();
  void sacrifice(crypto::Block seed);

  void write(WordSpan<R> to_a, WordSpan<R> to_b, WordSpan<R> to_c) const;

  Authentication<R>& authentication;
  Session<R>& session;
  const i64 n;
  WipedVector<Word> b, c, mask_c;
  Products<R> sent, received;
  WipedVector<Wide<R>> words, macs;  // of a, a^, b, c, c^, n each
};

}  // namespace privml::spdz2k
