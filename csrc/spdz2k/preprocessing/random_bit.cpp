// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/random_bit.h"

#include "base/error.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kBlock = i64{1} << 15;

}  // namespace

u128 inverse_root(u64 w, int k) {
  expect(k >= 1 && k <= 64, "inverse_root: k must be in 1..64");
  const u128 e = (u128{w} << 2) + 1;
  // e y^2 = 1 mod 2^j leads to 2^(2j - 2): 3, 4, 6, 10, 18, 34, 66, 130; a half loses the top bit.
  u128 y = 1;
  for (int precision = 3; precision < k + 2; precision = 2 * precision - 2) {
    y = y * ((3 - e * y * y) / 2);
  }
  return low_bits(y, k + 1);
}

template <class R>
void bits_from_squares(Session<R>& session, WordView<R> u, WordView<R> square, WordSpan<R> bits) {
  using Word = typename R::Word;
  expect(u.size() == bits.size() && square.size() == bits.size(), "bits: lengths differ");
  std::vector<u64> opened(std::min(kBlock, bits.size()));
  std::vector<Word> factor(opened.size()), constant(opened.size());
  for (i64 first = 0; first < bits.size(); first += kBlock) {
    const i64 n = std::min(kBlock, bits.size() - first);
    const std::span<u64> w = std::span(opened).first(n);
    const WordSpan<R> slots = begin_opening<R>(session, R::k, n);
    add(u.part(first, n), square.part(first, n), slots);
    finish_opening<R>(session, slots, R::k, w);
    for (i64 i = 0; i < n; ++i) {
      const u128 inverse = inverse_root(w[i], R::k);
      factor[i] = static_cast<Word>(inverse);
      constant[i] = static_cast<Word>((inverse + 1) / 2);
    }
    const WordSpan<R> out = bits.part(first, n);
    multiply_public(u.part(first, n), std::span<const Word>(factor).first(n), out);
    add_public(session.rank, session.alpha(), out, std::span<const Word>(constant).first(n), out);
  }
}

template <class R>
void cost_bits_from_squares(CostMeter& meter, i64 n) {
  for (i64 first = 0; first < n; first += kBlock) {
    cost_open<R>(meter, std::min(kBlock, n - first), R::k);
  }
}

template <class R>
void generate_bits(Authentication<R>& authentication, WordSpan<R> bits) {
  WordShares<R> u(bits.size()), square(bits.size());
  generate_squares<R>(authentication, u, square);
  bits_from_squares<R>(authentication.session(), u, square, bits);
  check(authentication.session());
}

#define PRIVML_INSTANTIATE(R)                                                             \
  template void bits_from_squares<R>(Session<R>&, WordView<R>, WordView<R>, WordSpan<R>); \
  template void cost_bits_from_squares<R>(CostMeter&, i64);                               \
  template void generate_bits<R>(Authentication<R>&, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
