// SPDX-License-Identifier: Apache-2.0
#include "functions/float/root.h"

namespace privml::floating {
namespace {

constexpr int kOffset = 65;  // exponents of results are -65 .. 127 before rounding
constexpr int kExponentWord = 8;

// By the exponent mod 256: the result's, and whether it is odd. At 0, 1 * 2^128.
std::vector<u64> exponent_table() {
  std::vector<u64> table(256);
  for (int i = 0; i < 256; ++i) {
    const int e = i > 128 ? i - 256 : i;
    const int result = e == -127 ? 127 : root_exponent(e);
    const u64 odd = e == -127 ? 0 : static_cast<u64>(e & 1);
    table[i] = static_cast<u64>(result + kOffset) | odd << kExponentWord;
  }
  return table;
}

}  // namespace

FloatShares rsqrt_of(functions::Evaluator& evaluator, const FloatShares& a) {
  const i64 n = evaluator.n;
  const std::vector<u64> table = exponent_table();
  const WordTable tables[] = {{table, kExponentWord + 1}};
  const functions::RingShares found = lookup_words(evaluator, tables, a.exponent, 8)[0];
  const functions::BitShares odd = bit_at(evaluator, found, kExponentWord);
  // The bit of the exponent replaces the leading one: an additive share of a top bit is also an XOR
  // share.
  const functions::BitShares leading = evaluator.negated(a.zero);
  const functions::RingShares x = evaluator.map(
      n, 24, [&](i64 i) { return a.mantissa[i] + (static_cast<u64>(odd[i] ^ leading[i]) << 23); });
  const functions::RingShares v = spline(evaluator, kInverseRoot, x);
  const functions::RingShares word = evaluator.word_to_ring(
      field_at(evaluator, found, 0, kExponentWord), {kExponentWord}, kFloat32.exponent_bits());
  const u64 offset = evaluator.constant(kOffset);
  const functions::RingShares e =
      evaluator.map(n, kFloat32.exponent_bits(), [&](i64 i) { return word[i] - offset; });
  return round_result(evaluator, e, v);
}

}  // namespace privml::floating
