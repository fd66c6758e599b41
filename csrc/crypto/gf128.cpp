// SPDX-License-Identifier: Apache-2.0
#include "crypto/gf128.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/cpu.h"

namespace privml::crypto {
namespace {

// The carry-less product from integer multiplications of operands with four zeros between any two
// bits: at most 13 products meet in one place, so carries stay in the gaps.
u128 carryless(u64 a, u64 b) {
  constexpr u64 kEveryFifth = 0x1084210842108421;
  constexpr u128 kWide = static_cast<u128>(0x2108421084210842) << 64 | 0x1084210842108421;
  u128 classes[5] = {};
  for (int i = 0; i < 5; ++i) {
    const u64 x = a & kEveryFifth << i;
    for (int j = 0; j < 5; ++j) {
      const u64 y = b & kEveryFifth << j;
      classes[(i + j) % 5] ^= static_cast<u128>(x) * y;
    }
  }
  u128 sum = 0;
  for (int c = 0; c < 5; ++c) sum ^= classes[c] & kWide << c;
  return sum;
}

Block block_of(u128 x) { return {static_cast<u64>(x), static_cast<u64>(x >> 64)}; }

WideProduct wide_product(Block a, Block b) {
  const Block low = block_of(carryless(a.lo, b.lo)), high = block_of(carryless(a.hi, b.hi));
  const Block middle = block_of(carryless(a.lo, b.hi) ^ carryless(a.hi, b.lo));
  return {{low.lo, low.hi ^ middle.lo}, {high.lo ^ middle.hi, high.hi}};
}

struct Choice {
  const char* name;
  // What `wide` leaves; `wide` may be none.
  void (*narrow)(const Block* rows, i64 row_count, i64 stride, const Block* coefficients, i64 count,
                 WideProduct* sums);
  i64 (*wide)(const Block* rows, i64 row_count, i64 stride, const Block* coefficients, i64 count,
              WideProduct* sums);
};

const Choice& choice() {
  static const Choice chosen = [] {
#if defined(__x86_64__)
    if (cpu_allows(CpuLevel::avx512) && gf128::vpclmul512_supported())
      return Choice{"vpclmul512", gf128::products_pclmul, gf128::products_vpclmul512};
    if (cpu_allows(CpuLevel::vaes) && gf128::vpclmul256_supported())
      return Choice{"vpclmul256", gf128::products_pclmul, gf128::products_vpclmul256};
    if (cpu_allows(CpuLevel::aesni) && gf128::pclmul_supported())
      return Choice{"pclmul", gf128::products_pclmul, nullptr};
#elif defined(__aarch64__)
    if (cpu_allows(CpuLevel::aesni) && gf128::pmull_supported())
      return Choice{"pmull", gf128::products_pmull, nullptr};
#endif
    return Choice{"portable", gf128::products_portable, nullptr};
  }();
  return chosen;
}

}  // namespace

const char* gf128_kernel() { return choice().name; }

Block gf128_reduce(const WideProduct& product) {
  // X^128 = X^7 + X^2 + X + 1; what that pushes past bit 127 is folded once more.
  const Block h = product.high;
  const u64 over = h.hi >> 63 ^ h.hi >> 62 ^ h.hi >> 57;
  const u64 lo = h.lo ^ over;
  return product.low ^
         Block{lo ^ lo << 1 ^ lo << 2 ^ lo << 7,
               h.hi ^ (h.hi << 1 | lo >> 63) ^ (h.hi << 2 | lo >> 62) ^ (h.hi << 7 | lo >> 57)};
}

Block gf128_multiply(Block a, Block b) {
  WideProduct product{};
  gf128_inner_products(&a, 1, 1, &b, 1, &product);
  return gf128_reduce(product);
}

void gf128_inner_products(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                          i64 count, WideProduct* sums) {
  const Choice& chosen = choice();
  const i64 done =
      chosen.wide ? chosen.wide(rows, row_count, stride, coefficients, count, sums) : 0;
  if (done < count)
    chosen.narrow(rows + done, row_count, stride, coefficients + done, count - done, sums);
}

namespace gf128 {

void products_portable(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                       i64 count, WideProduct* sums) {
  for (i64 r = 0; r < row_count; ++r) {
    for (i64 j = 0; j < count; ++j) {
      sums[r] ^= wide_product(rows[r * stride + j], coefficients[j]);
    }
  }
}

bool pmull_supported() {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
#else
  return false;
#endif
}

bool pclmul_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#else
  return false;
#endif
}

bool vpclmul256_supported() {
#if defined(__x86_64__)
  return pclmul_supported() && __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

bool vpclmul512_supported() {
#if defined(__x86_64__)
  return pclmul_supported() && __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

}  // namespace gf128
}  // namespace privml::crypto
