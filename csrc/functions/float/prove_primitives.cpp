// SPDX-License-Identifier: Apache-2.0
// Proof by test of the floating-point primitives in the clear, which are what the protocols
// compute, bit for bit.
//
//   prove_primitives [float32 pairs, default 10^8] [pairs of each other format, default 10^6]
//
// float32: sums, differences, products, quotients, roots, comparisons and whole numbers of random
// and directed pairs against the hardware's, exact results rounded with an unbounded exponent, then
// flushed or saturated. (4, 3): all pairs; other formats: random pairs; both against the rational
// number, rounded by comparisons of integers. Prints one JSON object per format; the exit status
// is 1 if anything differs.
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "functions/float/clear.h"
#include "functions/float/clear_conversion.h"
#include "functions/float/testing/reference.h"

namespace privml::floating {
namespace {

using testing::for_all_values;
using testing::round_double;

struct Pair {
  FloatValue a, b;
};

// Differences by operation.
struct Report {
  FloatFormat format;
  i64 pairs = 0;
  std::map<std::string, i64> wrong;

  void compare(const char* operation, bool equal) { wrong[operation] += equal ? 0 : 1; }
  bool print() const {
    std::printf("{\"format\": [%d, %d], \"pairs\": %ld, \"wrong\": {", format.exponent,
                format.mantissa, static_cast<long>(pairs));
    i64 total = 0;
    const char* separator = "";
    for (const auto& [name, count] : wrong) {
      std::printf("%s\"%s\": %ld", separator, name.c_str(), static_cast<long>(count));
      separator = ", ";
      total += count;
    }
    std::printf("}}\n");
    return total == 0;
  }
};

// numerator / denominator * 2^exponent to q + 1 bits with an unbounded exponent, then flushed or
// saturated. Both below 2^120.
FloatValue round_ratio(bool sign, u128 numerator, u128 denominator, int exponent, FloatFormat f) {
  if (numerator == 0) return float_zero(f, sign);
  int e = exponent;
  while (numerator < denominator) numerator *= 2, --e;
  while (numerator >= 2 * denominator) denominator *= 2, ++e;
  u64 m = 0;  // digits of the quotient, which lies in [1, 2)
  for (int bit = 0; bit <= f.mantissa; ++bit) {
    m = 2 * m + (numerator >= denominator ? 1 : 0);
    if (numerator >= denominator) numerator -= denominator;
    numerator *= 2;
  }
  if (numerator > denominator || (numerator == denominator && (m & 1))) ++m;
  if (m >> (f.mantissa + 1)) m >>= 1, ++e;
  if (e < f.least()) return float_zero(f, sign);
  if (e > f.greatest()) return float_infinity(f, sign);
  return {false, sign, e, m};
}

FloatValue exact_product(FloatValue a, FloatValue b, FloatFormat f) {
  return round_ratio(a.sign != b.sign, u128{a.mantissa} * b.mantissa, 1,
                     a.exponent + b.exponent - 2 * f.mantissa, f);
}

FloatValue exact_quotient(FloatValue a, FloatValue b, FloatFormat f) {
  const bool sign = a.sign != b.sign;
  if (a.zero) return float_zero(f, sign);
  if (b.zero) return float_infinity(f, sign);
  return round_ratio(sign, a.mantissa, b.mantissa, a.exponent - b.exponent, f);
}

// Beyond 2^(q+4) times, the smaller operand counts as a number slightly above zero.
FloatValue exact_sum(FloatValue a, FloatValue b, FloatFormat f) {
  if (a.zero && b.zero) return float_zero(f, a.sign && b.sign);
  if (a.zero || b.zero) return a.zero ? b : a;
  if (a.exponent < b.exponent) std::swap(a, b);
  const int d = std::min(a.exponent - b.exponent, f.mantissa + 5);
  const bool near = d == a.exponent - b.exponent;
  const __int128 first = static_cast<__int128>(u128{a.mantissa} << d) * (a.sign ? -1 : 1);
  const __int128 second = static_cast<__int128>(near ? b.mantissa : 1) * (b.sign ? -1 : 1);
  const __int128 sum = first + second;
  if (sum == 0) return float_zero(f);
  return round_ratio(sum < 0, static_cast<u128>(sum < 0 ? -sum : sum), 1,
                     a.exponent - d - f.mantissa, f);
}

// (2y - 1)^2 < 2^(q+2) m <= (2y + 1)^2 decides which y is nearest.
bool is_root(FloatValue a, FloatValue root, FloatFormat f) {
  if (a.zero) return root == float_zero(f, a.sign);
  const int odd = a.exponent & 1;
  const u128 square = u128{a.mantissa} << (f.mantissa + 2 + odd);
  const u128 low = 2 * u128{root.mantissa} - 1, high = low + 2;
  return root.exponent == (a.exponent - odd) / 2 && low * low < square && square < high * high &&
         !root.zero && !root.sign;
}

// -1, 0, 1 of a - b by exact integers.
int order(FloatValue a, FloatValue b) {
  const auto place = [](FloatValue v) -> __int128 {
    if (v.zero) return 0;
    const __int128 size = (static_cast<__int128>(v.exponent + 40000) << 64) + v.mantissa;
    return v.sign ? -size : size;
  };
  const __int128 x = place(a), y = place(b);
  return x < y ? -1 : x == y ? 0 : 1;
}

void check_exactly(Report& report, const Pair& pair, FloatFormat f) {
  const auto [a, b] = pair;
  const auto minus_b = FloatValue{b.zero, !b.sign, b.exponent, b.mantissa};
  ++report.pairs;
  report.compare("add", clear_float_add(a, b, f) == exact_sum(a, b, f));
  report.compare("subtract", clear_float_subtract(a, b, f) == exact_sum(a, minus_b, f));
  report.compare("multiply", clear_float_multiply(a, b, f) == exact_product(a, b, f));
  report.compare("divide", clear_float_divide(a, b, f) == exact_quotient(a, b, f));
  report.compare("sqrt", is_root(a, clear_float_sqrt(a, f), f));
  report.compare("less_than", clear_float_less_than(a, b) == (order(a, b) < 0));
  report.compare("less_equal", clear_float_less_equal(a, b) == (order(a, b) <= 0));
  report.compare("equal", clear_float_equal(a, b) == (order(a, b) == 0));
}

float single(FloatValue v) { return std::bit_cast<float>(single_bits_from_value(v)); }

// The hardware's result in terms of the format: denormals flushed. The exact products and quotients
// within half a unit below 2^-126 are rounded up to it by IEEE, where the precision ends there.
bool is_single(FloatValue result, float expected, double exact) {
  if (std::fabs(exact) < 0x1p-126 * (1 - 0x1p-25)) expected = std::copysign(0.0F, expected);
  if (std::fabs(expected) < 0x1p-126F) expected = std::copysign(0.0F, expected);
  return single_bits_from_value(result) == std::bit_cast<u32>(expected);
}

void check_single(Report& report, const Pair& pair) {
  const auto [a, b] = pair;
  const FloatFormat f = kFloat32;
  const float x = single(a), y = single(b);
  const double dx = x, dy = y;
  ++report.pairs;
  report.compare("add", is_single(clear_float_add(a, b, f), x + y, x + y));
  report.compare("subtract", is_single(clear_float_subtract(a, b, f), x - y, x - y));
  report.compare("multiply", is_single(clear_float_multiply(a, b, f), x * y, dx * dy));
  if (!b.zero) report.compare("divide", is_single(clear_float_divide(a, b, f), x / y, dx / dy));
  const FloatValue size = clear_float_absolute(a);
  report.compare("sqrt", is_single(clear_float_sqrt(size, f), std::sqrt(std::fabs(x)), 1));
  report.compare("less_than", clear_float_less_than(a, b) == (x < y));
  report.compare("less_equal", clear_float_less_equal(a, b) == (x <= y));
  report.compare("equal", clear_float_equal(a, b) == (x == y));
  report.compare("round_to_integer",
                 is_single(clear_float_round_to_integer(a, f), std::nearbyint(x), 1));
  const double fixed = std::clamp(std::nearbyint(dx * 4096), -0x1p31, 0x1p31 - 1);
  report.compare("to_fixed", clear_float_to_fixed(a, f, 32, 12) == static_cast<i64>(fixed));
}

// Random mantissas and those at the edges; exponents anywhere, near each other, or with the product
// or quotient at the ends of the range.
class Source {
 public:
  Source(FloatFormat f, u64 seed) : f_(f), random_(seed) {}

  Pair next() {
    const int range = static_cast<int>(f_.greatest() - f_.least()) + 1;
    const int first = static_cast<int>(f_.least());
    const int e = first + below(range);
    const int ends[] = {first, static_cast<int>(f_.greatest())};
    int other = 0;
    switch (below(4)) {
      case 0:
        other = first + below(range);
        break;
      case 1:
        other = e + below(2 * f_.mantissa + 9) - f_.mantissa - 4;
        break;
      case 2:
        other = ends[below(2)] - e + below(5) - 2;
        break;
      default:
        other = e - ends[below(2)] + below(5) - 2;
        break;
    }
    Pair pair{value(e), value(other)};
    if (below(16) == 0 && !pair.a.zero && !pair.b.zero) pair.b.mantissa = pair.a.mantissa;
    return pair;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<u64>(count)); }
  FloatValue value(int exponent) {
    const u64 one = u64{1} << f_.mantissa;
    const bool sign = random_() & 1;
    if (below(256) == 0) return float_zero(f_, sign);
    u64 m = random_() % one;
    switch (below(8)) {
      case 0:
        m = m & 7;
        break;
      case 1:
        m = one - 1 - (m & 7);
        break;
      case 2:
        m = (one / 2 + (m & 7) - 4) % one;
        break;
      default:
        break;
    }
    const i64 e = std::clamp<i64>(exponent, f_.least(), f_.greatest());
    return {false, sign, static_cast<int>(e), one + m};
  }

  FloatFormat f_;
  std::mt19937_64 random_;
};

bool prove(i64 singles, i64 others) {
  bool right = true;
  Report small{{4, 3}, 0, {}};
  for_all_values(small.format, [&](FloatValue a) {
    for_all_values(small.format, [&](FloatValue b) { check_exactly(small, {a, b}, small.format); });
  });
  right &= small.print();
  for (const FloatFormat f : {FloatFormat{8, 7}, FloatFormat{8, 10}, FloatFormat{5, 10},
                              FloatFormat{8, 27}, FloatFormat{11, 52}, kFloat32}) {
    Report report{f, 0, {}};
    Source source(f, 7);
    for (i64 i = 0; i < others; ++i) check_exactly(report, source.next(), f);
    right &= report.print();
  }
  Report report{kFloat32, 0, {}};
  Source source(kFloat32, 1);
  for (i64 i = 0; i < singles; ++i) check_single(report, source.next());
  return report.print() && right;
}

}  // namespace
}  // namespace privml::floating

int main(int argc, char** argv) {
  const privml::i64 singles = argc > 1 ? std::atol(argv[1]) : 100'000'000;
  const privml::i64 others = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  return privml::floating::prove(singles, others) ? 0 : 1;
}
