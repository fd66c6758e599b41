// SPDX-License-Identifier: Apache-2.0
// Proof by exhaustion of the floating-point functions' errors: all 2^32 single-precision inputs.
//
//   prove_functions <function> [threads] [step]
//
// Every input goes through the clear function, which is what the protocol computes, bit for bit.
// Its distance from the exact value in units in the last place of that value is known from double
// precision to 2^-20 units (glibc's functions are off by a few 2^-52, relatively). If that does
// not decide whether the result is the nearest number, or whether the error is below one unit, 113
// bits decide. Prints one JSON object; the exit status is 1 if an error reaches one unit or a
// result is wrong in kind: not zero if the exact value is, not infinite above the range, not
// zero below it. With a step the inputs are a sample: a quick look, not a proof.
#include <quadmath.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "functions/float/exponential.h"
#include "functions/float/gelu.h"
#include "functions/float/logarithm.h"
#include "functions/float/root.h"
#include "functions/float/saturating.h"
#include "functions/float/sigmoid.h"
#include "functions/float/sine.h"
#include "functions/float/tangent.h"

namespace privml::floating {
namespace {

using Quad = __float128;

const Quad kPi = acosq(Quad{-1});
constexpr double kUndecided = 0x1p-20;
constexpr int kBins = 20;  // of the histogram, per unit

// Both precisions under one name.
double sine(double x) { return std::sin(M_PI * x); }
Quad sine(Quad x) { return sinq(kPi * x); }
double cosine(double x) { return std::cos(M_PI * x); }
Quad cosine(Quad x) { return cosq(kPi * x); }
double tangent(double x) { return std::tan(M_PI * x); }
Quad tangent(Quad x) { return tanq(kPi * x); }
double power_of_two(double x) { return std::fabs(x) < 0x1p-27 ? 1 + M_LN2 * x : std::exp2(x); }
Quad power_of_two(Quad x) { return exp2q(x); }
double exponential(double x) { return std::fabs(x) < 0x1p-27 ? 1 + x : std::exp(x); }
Quad exponential(Quad x) { return expq(x); }
double logarithm_of_two(double x) { return std::log2(x); }
Quad logarithm_of_two(Quad x) { return log2q(x); }
double logarithm(double x) { return std::log(x); }
Quad logarithm(Quad x) { return logq(x); }

double tanh_of(double x) { return std::fabs(x) < 0x1p-14 ? x * (1 - x * x / 3) : std::tanh(x); }
Quad tanh_of(Quad x) { return tanhq(x); }
double erf_of(double x) {
  return std::fabs(x) < 0x1p-14 ? M_2_SQRTPI * x * (1 - x * x / 3) : std::erf(x);
}
Quad erf_of(Quad x) { return erfq(x); }
double inverse_root(double x) { return 1 / std::sqrt(x); }
Quad inverse_root(Quad x) { return 1 / sqrtq(x); }

// |x| modulo `period`, a power of two; exact.
template <class T>
T reduced(T x, T period) {
  const T size = x < 0 ? -x : x;
  if (size >= T(1 << 24)) return 0;
  return size - period * static_cast<T>(static_cast<i64>(size / period));
}

// Arguments reduced to [0, 1/2] or [0, 1/4] exactly. In double precision small arguments need the
// first two terms of a series alone.
template <class T>
T exact_sine(T x) {
  constexpr bool fast = std::is_same_v<T, double>;
  if (fast && std::fabs(static_cast<double>(x)) < 0x1p-14)
    return M_PI * x * (1 - M_PI * M_PI / 6 * x * x);
  T d = reduced(x, T(2));
  bool negative = x < 0;
  if (d >= 1) {
    d -= 1;
    negative = !negative;
  }
  if (d > T(0.5)) d = 1 - d;
  const T value = d <= T(0.25) ? sine(d) : cosine(T(0.5) - d);
  return negative ? -value : value;
}

template <class T>
T exact_cosine(T x) {
  constexpr bool fast = std::is_same_v<T, double>;
  if (fast && std::fabs(static_cast<double>(x)) < 0x1p-14) return 1 - M_PI * M_PI / 2 * x * x;
  T d = reduced(x, T(2));
  if (d > 1) d = 2 - d;
  const bool negative = d > T(0.5);
  if (negative) d = 1 - d;
  const T value = d <= T(0.25) ? cosine(d) : sine(T(0.5) - d);
  return negative ? -value : value;
}

template <class T>
T exact_tangent(T x) {
  constexpr bool fast = std::is_same_v<T, double>;
  if (fast && std::fabs(static_cast<double>(x)) < 0x1p-14)
    return M_PI * x * (1 + M_PI * M_PI / 3 * x * x);
  T d = reduced(x, T(1));
  const bool negative = (x < 0) != (d > T(0.5));
  if (d > T(0.5)) d = 1 - d;
  const T value = d <= T(0.25) ? tangent(d) : 1 / tangent(T(0.5) - d);
  return negative ? -value : value;
}

constexpr double kTiny = 0x1p-26;  // below it a first order is exact to 2^-51

double gelu_of(double x) {
  return std::fabs(x) < kTiny ? 0.5 * x * (1 + M_2_SQRTPI * M_SQRT1_2 * x)
                              : 0.5 * x * std::erfc(-x * M_SQRT1_2);
}
Quad gelu_of(Quad x) { return x * erfcq(-x / sqrtq(2)) / 2; }

template <class T>
T exact_sigmoid(T x) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::fabs(x) < kTiny) return 0.5 + 0.25 * x;
  }
  const T power = exponential(x < 0 ? x : -x);
  return (x < 0 ? power : T(1)) / (1 + power);
}

struct Function {
  const char* name;
  FloatValue (*twin)(FloatValue);
  double (*fast)(double);
  Quad (*precise)(Quad);
  bool positive_only = false;
};

// Largest error first found and what the errors are like.
struct Tally {
  double largest = 0;
  u32 input = 0;
  u64 inputs = 0, nearest = 0, zeros = 0, below = 0, above = 0, decided_precisely = 0, wrong = 0;
  u32 wrong_input = 0;
  std::vector<u64> histogram = std::vector<u64>(kBins + 1);

  void add(const Tally& other) {
    if (other.largest > largest) {
      largest = other.largest;
      input = other.input;
    }
    if (other.wrong != 0) wrong_input = other.wrong_input;
    inputs += other.inputs;
    nearest += other.nearest;
    zeros += other.zeros;
    below += other.below;
    above += other.above;
    decided_precisely += other.decided_precisely;
    wrong += other.wrong;
    for (int i = 0; i <= kBins; ++i) histogram[i] += other.histogram[i];
  }
};

// double_from_value() without the call of ldexp.
double fast_double(FloatValue v) {
  if (v.zero) return v.sign ? -0.0 : 0.0;
  return std::bit_cast<double>(u64{v.sign} << 63 | static_cast<u64>(v.exponent + 1023) << 52 |
                               (v.mantissa & 0x7fffff) << 29);
}

// |result - exact| in units in the last place of `exact`, a normal number.
double error_of(double result, double exact) {
  const int exponent = static_cast<int>((std::bit_cast<u64>(exact) >> 52) & 2047) - 1023;
  const double per_unit = std::bit_cast<double>(static_cast<u64>(1023 + 23 - exponent) << 52);
  return std::fabs(result - exact) * per_unit;
}

double precise_error(double result, Quad exact) {
  int exponent = 0;
  (void)frexpq(exact, &exponent);
  return static_cast<double>(fabsq(ldexpq(Quad(result) - exact, 24 - exponent)));
}

void check(const Function& f, u32 bits, Tally& tally) {
  const FloatValue a = value_from_single_bits(bits);
  const FloatValue r = f.twin(a);
  const double x = fast_double(a);
  const double exact = f.fast(x);
  ++tally.inputs;
  const auto fail = [&] {
    ++tally.wrong;
    tally.wrong_input = bits;
  };
  if (exact == 0) {
    ++tally.zeros;
    if (!r.zero) fail();
    return;
  }
  if (std::isinf(exact)) {
    ++tally.above;
    if (!is_infinity(r, kFloat32)) fail();
    return;
  }
  const double size = std::fabs(exact);
  if (size < 0x1p-126) {
    ++tally.below;
    if (!r.zero && !(size > 0x1.fffffep-127 && r.exponent == -126 && r.mantissa == 1 << 23)) fail();
    return;
  }
  if (is_infinity(r, kFloat32)) {
    ++tally.above;
    if (size < 0x1.fffffep127) fail();
    return;
  }
  const double result = fast_double(r);
  double error = error_of(result, exact);
  if (std::fabs(error - 0.5) < kUndecided || error > 1 - kUndecided) {
    ++tally.decided_precisely;
    error = precise_error(result, f.precise(x));
  }
  tally.nearest += error <= 0.5;
  ++tally.histogram[std::min(static_cast<int>(error * kBins), kBins)];
  if (!(error < 1)) fail();
  if (!(error <= tally.largest)) {
    tally.largest = error;
    tally.input = bits;
  }
}

Tally prove(const Function& f, int threads, u64 step) {
  constexpr u64 kPiece = u64{1} << 22;
  std::atomic<u64> next{0};
  std::vector<Tally> tallies(threads);
  const auto work = [&](Tally& tally) {
    for (u64 begin = kPiece * next++; begin < u64{1} << 32; begin = kPiece * next++) {
      for (u64 i = (begin + step - 1) / step * step; i < begin + kPiece; i += step) {
        const u32 bits = static_cast<u32>(i);
        if ((bits & 0x7fffffff) > 0x7f800000) continue;  // NaN
        if (((bits >> 23) & 255) == 255) continue;       // infinities: tested apart
        if (f.positive_only && (bits >> 31 || bits < 0x800000)) continue;
        check(f, bits, tally);
      }
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { work(tallies[t]); });
  work(tallies[0]);
  for (std::thread& thread : others) thread.join();
  for (int t = 1; t < threads; ++t) tallies[0].add(tallies[t]);
  return tallies[0];
}

#define PRIVML_EXACT(f) f<double>, f<Quad>

const Function kFunctions[] = {
    {"sin_pi", clear_float_sin_pi, PRIVML_EXACT(exact_sine)},
    {"cos_pi", clear_float_cos_pi, PRIVML_EXACT(exact_cosine)},
    {"tan_pi", clear_float_tan_pi, PRIVML_EXACT(exact_tangent)},
    {"exp2", clear_float_exp2, power_of_two, power_of_two},
    {"exp", clear_float_exp, exponential, exponential},
    {"log2", clear_float_log2, logarithm_of_two, logarithm_of_two, true},
    {"log", clear_float_log, logarithm, logarithm, true},
    {"rsqrt", clear_float_rsqrt, inverse_root, inverse_root, true},
    {"sigmoid", clear_float_sigmoid, PRIVML_EXACT(exact_sigmoid)},
    {"tanh", clear_float_tanh, tanh_of, tanh_of},
    {"erf", clear_float_erf, erf_of, erf_of},
    {"gelu", clear_float_gelu, gelu_of, gelu_of},
};

void print(const Function& f, const Tally& tally, u64 step) {
  std::printf(
      "{\"function\": \"%s\", \"inputs\": %llu, \"every\": %llu, \"largest_error\": %.6f, "
      "\"at\": \"0x%08x\", \"nearest\": %llu, \"zeros\": %llu, \"below_range\": %llu, "
      "\"above_range\": %llu, \"decided_by_113_bits\": %llu, \"wrong\": %llu, ",
      f.name, static_cast<unsigned long long>(tally.inputs), static_cast<unsigned long long>(step),
      tally.largest, tally.input, static_cast<unsigned long long>(tally.nearest),
      static_cast<unsigned long long>(tally.zeros), static_cast<unsigned long long>(tally.below),
      static_cast<unsigned long long>(tally.above),
      static_cast<unsigned long long>(tally.decided_precisely),
      static_cast<unsigned long long>(tally.wrong));
  if (tally.wrong != 0) std::printf("\"wrong_at\": \"0x%08x\", ", tally.wrong_input);
  std::printf("\"histogram_of_twentieths\": [");
  for (int i = 0; i <= kBins; ++i)
    std::printf("%s%llu", i ? ", " : "", static_cast<unsigned long long>(tally.histogram[i]));
  std::printf("]}\n");
}

int run(int argc, char** argv) {
  for (const Function& f : kFunctions) {
    if (argc < 2 || std::string_view(argv[1]) != f.name) continue;
    const u64 step = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    const Tally tally =
        prove(f, argc > 2 ? std::max(1, std::atoi(argv[2])) : 1, std::max<u64>(step, 1));
    print(f, tally, step);
    return tally.wrong != 0;
  }
  std::fprintf(stderr, "prove_functions <function> [threads] [step]; functions:");
  for (const Function& f : kFunctions) std::fprintf(stderr, " %s", f.name);
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace
}  // namespace privml::floating

int main(int argc, char** argv) { return privml::floating::run(argc, argv); }
