// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/group_check.h"

#include "base/multiversion.h"

namespace privml::spdz2k {

// A macro and no function, since what target clones call is not compiled for their instructions;
// bits from an array and no shifts, since compilers make masked vector additions of that.
#define PRIVML_ADD_SUBSET_SUMS(WORD)                                                        \
  PRIVML_TARGET_CLONES                                                                      \
  void add_subset_sums(const WORD* words, const WORD* subsets, i64 n, WORD* sums) {         \
    constexpr int kSums = 8 * sizeof(WORD);                                                 \
    WORD bit[kSums], total[kSums];                                                          \
    for (int l = 0; l < kSums; ++l) {                                                       \
      bit[l] = static_cast<WORD>(WORD{1} << l);                                             \
      total[l] = sums[l];                                                                   \
    }                                                                                       \
    for (i64 i = 0; i < n; ++i) {                                                           \
      const WORD word = words[i], subset = subsets[i];                                      \
      for (int l = 0; l < kSums; ++l) {                                                     \
        total[l] = static_cast<WORD>(total[l] + ((subset & bit[l]) != 0 ? word : WORD{0})); \
      }                                                                                     \
    }                                                                                       \
    for (int l = 0; l < kSums; ++l) sums[l] = total[l];                                     \
  }

PRIVML_ADD_SUBSET_SUMS(u64)
PRIVML_ADD_SUBSET_SUMS(u32)
PRIVML_ADD_SUBSET_SUMS(u8)

}  // namespace privml::spdz2k
