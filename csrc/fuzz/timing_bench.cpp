// SPDX-License-Identifier: Apache-2.0
// Whether the time that a party computes depends on its secrets: for two classes of inputs, one
// fixed and one random, or two that take different branches in the clear, the t value of Welch's
// test on the times of one party alone, whose peer sends prepared bytes (fuzz/scripted.h). Up to
// 4.5 either way is noise.
//
// Method  Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?" (DATE 2017): classes in
//         random order, times above a percentile left out, and several percentiles tried.
//
// timing_bench [MEASUREMENTS]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "base/divisor.h"
#include "functions/float/addition.h"
#include "functions/float/comparison.h"
#include "functions/float/division.h"
#include "functions/float/exponential.h"
#include "functions/float/multiplication.h"
#include "fuzz/scripted.h"
#include "ot/setup.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/relu.h"
#include "twopc/compare/wrap.h"
#include "twopc/select/multiplex.h"
#include "twopc/width/division.h"
#include "twopc/width/signed_wrap.h"
#include "twopc/width/truncation.h"

namespace privml::fuzz {
namespace {

constexpr i64 kCount = 64;  // elements of an operation
constexpr crypto::Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};
constexpr double kNoise = 4.5;
const volatile u64 kDivisor = 1000;  // not known to the compiler
constexpr int kPasses = 100;

// Inputs of the party, and bits for those that select.
struct Secrets {
  std::vector<u64> words = std::vector<u64>(kCount);
  std::vector<u8> bits = std::vector<u8>(kCount);
  floating::FloatVector floats{kCount};
};

struct Operation {
  const char* name;
  std::function<void(ot::Party&, const Secrets&)> run;
};

// Class 0: zeros, all positive, nothing selected. Class 1: random words, signs, exponents.
Secrets secrets_of(int kind, std::mt19937_64& random) {
  Secrets secrets;
  for (i64 i = 0; i < kCount; ++i) {
    const u64 word = random(), more = random();
    const u64 mask = u64{0} - static_cast<u64>(kind);
    secrets.words[i] = word & mask;
    secrets.bits[i] = static_cast<u8>(more & mask & 1);
    secrets.floats.zero[i] = static_cast<u8>(more >> 1 & mask & 1);
    secrets.floats.sign[i] = static_cast<u8>(more >> 2 & mask & 1);
    secrets.floats.exponent[i] = more >> 3 & mask & low_mask(floating::kFloat32.exponent_bits());
    secrets.floats.mantissa[i] = word & mask & low_mask(floating::kFloat32.mantissa_bits());
  }
  return secrets;
}

double nanoseconds_of(const Operation& operation, int rank, const Secrets& secrets, Bytes script) {
  ScriptedChannel channel(script);
  const auto resources =
      ot::make_party_resources(channel, rank, {"ideal", 0, "semi_honest", kSeed});
  ot::reserve(resources->party(), 1 << 15, 1 << 15);
  const auto start = std::chrono::steady_clock::now();
  operation.run(resources->party(), secrets);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

double welch(const std::vector<double>& a, const std::vector<double>& b) {
  const auto moments = [](const std::vector<double>& x) {
    const double n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) square += (value - mean) * (value - mean) / (n - 1);
    return std::pair(mean, square / n);
  };
  const auto [mean_a, error_a] = moments(a);
  const auto [mean_b, error_b] = moments(b);
  return (mean_a - mean_b) / std::sqrt(error_a + error_b);
}

// The t value of largest size over times below several percentiles of all.
double largest_t(const std::array<std::vector<double>, 2>& times) {
  std::vector<double> all(times[0]);
  all.insert(all.end(), times[1].begin(), times[1].end());
  std::sort(all.begin(), all.end());
  double largest = 0;
  for (const double part : {0.5, 0.7, 0.8, 0.9, 0.95, 1.0}) {
    const double limit = all[static_cast<size_t>(part * static_cast<double>(all.size() - 1))];
    std::array<std::vector<double>, 2> below;
    for (size_t kind : {0, 1}) {
      std::copy_if(times[kind].begin(), times[kind].end(), std::back_inserter(below[kind]),
                   [&](double time) { return time <= limit; });
    }
    if (below[0].size() < 100 || below[1].size() < 100) continue;
    const double t = welch(below[0], below[1]);
    if (std::abs(t) > std::abs(largest)) largest = t;
  }
  return largest;
}

std::vector<Operation> operations() {
  const auto words = [](auto run) {
    return [run](ot::Party& party, const Secrets& s) {
      std::vector<u64> out(kCount);
      run(party, s, out);
    };
  };
  const auto floats = [](auto run) {
    return [run](ot::Party& party, const Secrets& s) {
      floating::FloatVector out(kCount);
      run(party, s.floats, out);
    };
  };
  return {
      {"millionaires, 32 bits",
       [](ot::Party& p, const Secrets& s) {
         std::vector<u64> x(s.words);
         for (u64& word : x) word &= low_mask(32);
         std::vector<u8> out(kCount);
         twopc::millionaires(p, x, 32, out);
       }},
      {"most significant bit",
       [](ot::Party& p, const Secrets& s) {
         std::vector<u8> out(kCount);
         twopc::most_significant_bit(p, s.words, 64, out);
       }},
      {"ReLU",
       words([](ot::Party& p, const Secrets& s, auto& out) { twopc::relu(p, s.words, 64, out); })},
      {"select", words([](ot::Party& p, const Secrets& s, auto& out) {
         twopc::multiplex(p, s.bits, s.words, 64, out);
       })},
      {"truncation", words([](ot::Party& p, const Secrets& s, auto& out) {
         twopc::truncate_arithmetic(p, s.words, 64, 16, out);
       })},
      {"wrap by products", words([](ot::Party& p, const Secrets& s, auto& out) {
         twopc::signed_wrap(p, s.words, 64, 5 * (u64{1} << 60), 8, out);
       })},
      {"wrap by comparison", words([](ot::Party& p, const Secrets& s, auto& out) {
         twopc::signed_wrap(p, s.words, 64, (u64{1} << 63) - (u64{1} << 51), 8, out);
       })},
      {"division by 1000", words([](ot::Party& p, const Secrets& s, auto& out) {
         twopc::divide_bounded(p, s.words, 64, u64{1} << 62, 1000, out);
       })},
      {"quotients alone", words([](ot::Party&, const Secrets& s, auto& out) {
         const PublicDivisor divisor(kDivisor);
         for (int pass = 0; pass < kPasses; ++pass) {
           for (size_t i = 0; i < out.size(); ++i) out[i] ^= divisor.quotient(s.words[i] ^ out[i]);
         }
       })},
      {"float addition",
       floats([](ot::Party& p, const floating::FloatVector& a, floating::FloatVector& out) {
         floating::float_add(floating::kFloat32).run(p, a, a, out);
       })},
      {"float multiplication",
       floats([](ot::Party& p, const floating::FloatVector& a, floating::FloatVector& out) {
         floating::float_multiply(floating::kFloat32).run(p, a, a, out);
       })},
      {"float division",
       floats([](ot::Party& p, const floating::FloatVector& a, floating::FloatVector& out) {
         floating::float_divide(floating::kFloat32).run(p, a, a, out);
       })},
      {"float comparison",
       [](ot::Party& p, const Secrets& s) {
         std::vector<u8> out(kCount);
         floating::float_less_than(floating::kFloat32).run(p, s.floats, s.floats, out);
       }},
      {"float ReLU",
       floats([](ot::Party& p, const floating::FloatVector& a, floating::FloatVector& out) {
         floating::float_relu(floating::kFloat32).run(p, a, out);
       })},
      {"float exponential",
       floats([](ot::Party& p, const floating::FloatVector& a, floating::FloatVector& out) {
         floating::float32_function(floating::exp_of).run(p, a, out);
       })},
      // What the test must find: the processor's division, and a branch on each word.
      {"(division of secrets)", words([](ot::Party&, const Secrets& s, auto& out) {
         for (int pass = 0; pass < kPasses; ++pass) {
           for (size_t i = 0; i < out.size(); ++i) out[i] ^= (s.words[i] ^ out[i]) / kDivisor;
         }
       })},
      {"(a branch on secrets)", words([](ot::Party& p, const Secrets& s, auto& out) {
         for (size_t i = 0; i < out.size(); ++i) {
           if ((s.words[i] & 1) != 0) {
             for (int j = 0; j < 3; ++j) out[i] += p.prg.next_block().lo;
           }
         }
         twopc::relu(p, s.words, 64, out);
       })},
  };
}

void measure(const Operation& operation, int rank, int count) {
  std::mt19937_64 random(7);
  std::vector<u8> script(size_t{1} << 18);
  for (u8& byte : script) byte = static_cast<u8>(random());
  std::array<std::vector<double>, 2> times;
  std::array<double, 2> mean{};
  for (int i = -count / 20; i < count; ++i) {  // the first ones warm up
    const int kind = static_cast<int>(random() & 1);
    const Secrets secrets = secrets_of(kind, random);
    const double time = nanoseconds_of(operation, rank, secrets, script);
    if (i >= 0) times[static_cast<size_t>(kind)].push_back(time);
  }
  for (size_t kind : {0, 1}) {
    for (const double time : times[kind])
      mean[kind] += time / static_cast<double>(times[kind].size());
  }
  const double t = largest_t(times);
  std::printf("%-24s %d %8d %12.0f %12.0f %8.2f%s\n", operation.name, rank, count, mean[0], mean[1],
              t, std::abs(t) > kNoise ? "  differs" : "");
  std::fflush(stdout);
}

}  // namespace
}  // namespace privml::fuzz

int main(int argc, char** argv) {
  using namespace privml::fuzz;
  const int count = argc > 1 ? std::atoi(argv[1]) : 4000;
  std::printf("operation             party    times  ns, class 0  ns, class 1        t\n");
  for (const Operation& operation : operations()) {
    for (const int rank : {0, 1}) measure(operation, rank, count);
  }
}
