// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of processor time per value in each kernel of the sign bit, for every instruction set
// of this machine. Usage: threepc_bench [values]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "threepc/testing/shares.h"

namespace privml::threepc {
namespace {

// The best of several runs.
template <class Work>
double nanoseconds(i64 values, const Work& work) {
  double best = 1e30;
  for (int run = 0; run < 7; ++run) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best * 1e9 / static_cast<double>(values);
}

const char* name(KernelBackend backend) {
  const char* names[] = {"portable", "avx2", "avx512"};
  return names[static_cast<int>(backend)];
}

void bench_sign(int bits, int prime, i64 count, KernelBackend backend) {
  SignCase c;
  c.field = sign_field(bits, prime);
  std::mt19937_64 random(1);
  for (i64 i = 0; i < count; ++i) {
    c.m.push_back(static_cast<i64>(random()));
    c.r.push_back(static_cast<i64>(random()));
  }
  c.draw(2);
  const Loops loops{1, backend};
  SignLists lists = run_sign(c, loops);
  const double deal = nanoseconds(count, [&] {
    deal_sign({c.field, c.r.data(), count, kDealKey, 5, lists.dealt.data()}, loops);
  });
  double mask[2];
  for (int party : {0, 1})
    mask[party] = nanoseconds(count, [&] {
      Numbers& out = party == 0 ? lists.first : lists.second;
      mask_sign(mask_job(c, party, lists.dealt, out), loops);
    });
  const double open = nanoseconds(count, [&] {
    open_sign({c.field, lists.first.data(), lists.second.data(), count, lists.zero.data()}, loops);
  });
  std::printf("%-8s bits %d p %-3d  deal %6.1f  mask %6.1f %6.1f  open %5.1f  all %6.1f ns\n",
              name(backend), bits, prime, deal, mask[0], mask[1], open,
              deal + mask[0] + mask[1] + open);
}

void bench_fills(i64 count, KernelBackend backend) {
  Elements words(count);
  Numbers bytes(count);
  const Loops loops{1, backend};
  const auto job = [&](int bits, u32 modulus) {
    return FillJob{kDealKey, 0, count, bits, modulus, nullptr, words.data(), bytes.data()};
  };
  std::printf(
      "%-8s words of 32 %5.2f  of 64 %5.2f  bits %5.2f  below 127 %5.2f  below 61 %5.2f ns\n",
      name(backend), nanoseconds(count, [&] { fill_words(job(32, 0), loops); }),
      nanoseconds(count, [&] { fill_words(job(64, 0), loops); }),
      nanoseconds(count, [&] { fill_bits(job(1, 0), loops); }),
      nanoseconds(count, [&] { fill_field(job(8, 127), loops); }),
      nanoseconds(count, [&] { fill_field(job(8, 61), loops); }));
}

}  // namespace
}  // namespace privml::threepc

int main(int argc, char** argv) {
  using namespace privml::threepc;
  const privml::i64 count = argc > 1 ? std::atoll(argv[1]) : 1 << 17;
  for (const auto backend : supported_backends()) {
    bench_fills(count, backend);
    for (auto [bits, prime] : {std::pair{32, 127}, {32, 61}, {64, 127}, {64, 67}})
      bench_sign(bits, prime, count, backend);
  }
  return 0;
}
