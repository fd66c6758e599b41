// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/combination.h"

#include "base/multiversion.h"

namespace privml::spdz2k {
namespace {

// Eight words at once, so that the sums are read and written once for them.
constexpr i64 kTogether = 8;

// A macro and no function: what target clones call would not be compiled for their instructions.
#define PRIVML_SUBSET_SUMS(WORD)                                                                \
  constexpr int kSums = 8 * sizeof(WORD);                                                       \
  i64 i = 0;                                                                                    \
  for (; i + kTogether <= n; i += kTogether) {                                                  \
    const WORD* w = words + i;                                                                  \
    const WORD* s = subsets + i;                                                                \
    for (int l = 0; l < kSums; ++l) {                                                           \
      WORD sum = sums[l];                                                                       \
      for (int j = 0; j < kTogether; ++j) {                                                     \
        sum = static_cast<WORD>(sum + ((s[j] >> l & 1) != 0 ? w[j] : WORD{0}));                 \
      }                                                                                         \
      sums[l] = sum;                                                                            \
    }                                                                                           \
  }                                                                                             \
  for (; i < n; ++i) {                                                                          \
    for (int l = 0; l < kSums; ++l) {                                                           \
      sums[l] = static_cast<WORD>(sums[l] + ((subsets[i] >> l & 1) != 0 ? words[i] : WORD{0})); \
    }                                                                                           \
  }

}  // namespace

PRIVML_TARGET_CLONES
void add_subset_sums(const u64* words, const u64* subsets, i64 n,
                     u64* __restrict sums){PRIVML_SUBSET_SUMS(u64)}

PRIVML_TARGET_CLONES void add_subset_sums(const u32* words, const u32* subsets, i64 n,
                                          u32* __restrict sums){PRIVML_SUBSET_SUMS(u32)}

PRIVML_TARGET_CLONES
    void add_subset_sums(const u8* words, const u8* subsets, i64 n, u8* __restrict sums) {
  PRIVML_SUBSET_SUMS(u8)
}

}  // namespace privml::spdz2k
